// For tests of checkpoint/: a small model and weights for it.
#ifndef LONGHAUL_CHECKPOINT_TEST_MODEL_H_
#define LONGHAUL_CHECKPOINT_TEST_MODEL_H_

#include <vector>

#include "checkpoint/hugging_face.h"
#include "model/family.h"

namespace longhaul::checkpoint {

inline model::ModelSpec SmallSpec(bool tied) { return {"gpt2", 2, 4, 2, 3, 5, tied}; }

inline model::Graph SmallGraph(bool tied = true) { return *model::BuildGraph(SmallSpec(tied)); }

// Every element of every parameter is another number.
inline ModelWeights SmallWeights(bool tied, float first = 1.0f) {
  ModelWeights weights{SmallSpec(tied), {}};
  float next = first;
  for (const model::Parameter& parameter : SmallGraph(tied).parameters) {
    std::vector<float>& values = weights.parameters.emplace_back(parameter.elements());
    for (float& value : values) value = next++;
  }
  return weights;
}

}  // namespace longhaul::checkpoint

#endif  // LONGHAUL_CHECKPOINT_TEST_MODEL_H_
