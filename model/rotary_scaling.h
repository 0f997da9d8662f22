// How a model stretches its rotary position embedding to a longer context than it was trained with.
#ifndef LONGHAUL_MODEL_ROTARY_SCALING_H_
#define LONGHAUL_MODEL_ROTARY_SCALING_H_

#include <cstdint>

namespace longhaul::model {

// Llama 3's scaling of frequencies (Llama Team 2024, as in Hugging Face's "llama3" rope type): a
// wave longer than original_context / low_frequency_factor is slowed down by `factor`, one shorter
// than original_context / high_frequency_factor is kept, and between them the two are mixed. A
// factor of 1 changes nothing.
struct RotaryScaling {
  double factor = 1;                 // at least 1
  double low_frequency_factor = 1;   // positive
  double high_frequency_factor = 4;  // above low_frequency_factor
  int64_t original_context = 8192;   // positive
  bool operator==(const RotaryScaling&) const = default;
};

}  // namespace longhaul::model

#endif  // LONGHAUL_MODEL_ROTARY_SCALING_H_
