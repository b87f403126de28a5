const char s[] = R"(" /* )";
#include "/etc/hostname"
/* */
