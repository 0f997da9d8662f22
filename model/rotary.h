// Rotary position embedding as data: which angles a model turns by.
#ifndef LONGHAUL_MODEL_ROTARY_H_
#define LONGHAUL_MODEL_ROTARY_H_

#include <cstdint>

namespace longhaul::model {

// How Llama 3 stretches the wavelengths of a model trained with `original_context` (Grattafiori et
// al. 2024, section 3.4.3; Hugging Face's rope_type "llama3"): those longer than original_context /
// low_frequency_factor grow by `factor`, those shorter than original_context /
// high_frequency_factor stay, those between are interpolated. A factor of 1 changes nothing.
struct RotaryScaling {
  double factor = 1;
  double low_frequency_factor = 1;
  double high_frequency_factor = 4;
  int64_t original_context = 8192;
  bool operator==(const RotaryScaling&) const = default;
};

// Position t turns the pair (i, i + head_width/2) of a head by t * theta^(-2i/head_width), scaled.
struct RotarySpec {
  double theta = 10000;
  RotaryScaling scaling;
  bool operator==(const RotarySpec&) const = default;
};

}  // namespace longhaul::model

#endif  // LONGHAUL_MODEL_ROTARY_H_
