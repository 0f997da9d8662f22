// What a stage computes its activations, their gradients and its products in. Master weights,
// moments, gradient accumulators and statistics are fp32 either way.
#ifndef LONGHAUL_MODEL_PRECISION_H_
#define LONGHAUL_MODEL_PRECISION_H_

#include <cstdint>

namespace longhaul::model {

enum class Precision { kFloat32, kBFloat16 };

// As files and messages say it: "fp32", "bf16".
constexpr const char* NameOf(Precision precision) {
  return precision == Precision::kFloat32 ? "fp32" : "bf16";
}

// Bytes of one element of an activation.
constexpr int64_t ElementBytes(Precision precision) {
  return precision == Precision::kFloat32 ? 4 : 2;
}

// How many elements of an activation one fp32 number takes the memory of.
constexpr int64_t WideElements(Precision precision) {
  return static_cast<int64_t>(sizeof(float)) / ElementBytes(precision);
}

}  // namespace longhaul::model

#endif  // LONGHAUL_MODEL_PRECISION_H_
