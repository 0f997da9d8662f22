#include "base/check.h"
#include "model/graph.h"
#include "schedule/program.h"
