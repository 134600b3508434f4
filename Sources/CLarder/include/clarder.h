#ifndef CLARDER_H
#define CLARDER_H
#include <stdint.h>
#include <stddef.h>
#endif
