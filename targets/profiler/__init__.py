"""The profiler: reads the schedule that a compiler dumps as JSON, and says where its time goes."""
