#include "model/graph.h"

#include "compute/ops/gelu.h"
#include "gtest/gtest.h"
