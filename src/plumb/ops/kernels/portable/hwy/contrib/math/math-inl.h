// The exponential function stands in hwy/highway.h.
#pragma once
