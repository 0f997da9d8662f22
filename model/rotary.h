// Rotary position embedding as data: which angles a model turns by.
#ifndef LONGHAUL_MODEL_ROTARY_H_
#define LONGHAUL_MODEL_ROTARY_H_

#include "model/rotary_scaling.h"

namespace longhaul::model {

// Position t turns the pair (i, i + head_width/2) of a head by t * theta^(-2i/head_width), scaled
// (Su et al. 2021).
struct Rotary {
  double theta = 10000;
  RotaryScaling scaling;
  bool operator==(const Rotary&) const = default;
};

}  // namespace longhaul::model

#endif  // LONGHAUL_MODEL_ROTARY_H_
