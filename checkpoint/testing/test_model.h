// For tests of checkpoint/: a small model and weights for it.
#ifndef LONGHAUL_CHECKPOINT_TESTING_TEST_MODEL_H_
#define LONGHAUL_CHECKPOINT_TESTING_TEST_MODEL_H_

#include <string>
#include <utility>
#include <vector>

#include "base/file_pieces.h"
#include "checkpoint/hugging_face.h"
#include "gtest/gtest.h"
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

inline FilePieces OnePiece(std::string bytes) {
  return [bytes = std::move(bytes)](AppendPiece append) { return append(bytes); };
}

// The whole file.
inline std::string Joined(const FilePieces& pieces) {
  std::string bytes;
  EXPECT_TRUE(pieces([&bytes](absl::string_view piece) {
                bytes.append(piece.data(), piece.size());
                return absl::OkStatus();
              }).ok());
  return bytes;
}

}  // namespace longhaul::checkpoint

#endif  // LONGHAUL_CHECKPOINT_TESTING_TEST_MODEL_H_
