// x#include "/etc/hostname"
