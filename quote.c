#if 0
' /*
#endif
#include "/etc/hostname"
/* */
