// See gloo/context.h.
#pragma once

#include "gloo/context.h"
