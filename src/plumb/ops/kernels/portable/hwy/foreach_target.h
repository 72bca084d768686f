// Highway includes the kernels here once for every instruction set but the last; there is only one.
#pragma once

#include <hwy/highway.h>
