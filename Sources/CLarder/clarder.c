#include "clarder.h"
