// Calls of every operator at a model's shapes: what to time, and what to compare with the CPU's.
#ifndef LONGHAUL_TESTS_BENCH_GPU_OPERATORS_H_
#define LONGHAUL_TESTS_BENCH_GPU_OPERATORS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "compute/backend/element.h"
#include "model/buffer_plan.h"
#include "tests/bench/gpu/arrays.h"

namespace longhaul::gpu_check {

using compute::Wide;

// The extents of one transformer block with its embedding and head.
struct BlockShape {
  int64_t sequences = 0;
  int64_t context = 0;
  int64_t hidden = 0;
  int64_t heads = 0;
  int64_t ffn = 0;
  bool gated = false;  // the first product of the MLP makes gate | up; no product has a bias
  int64_t vocab = 0;

  int64_t rows() const { return sequences * context; }
  // As training in bf16 has them, which is what is timed.
  int64_t logits_pitch() const { return model::LogitsPitch(vocab, model::Precision::kBFloat16); }
};

// One call, ready to run as often as wanted (what it adds to grows), and what it must do at least.
template <typename T>
struct OperatorCall {
  std::function<absl::Status()> run = {};
  std::vector<absl::Span<const T>> outputs = {};
  std::vector<absl::Span<const Wide<T>>> wide_outputs = {};
  std::shared_ptr<double> result = {};  // a sum over all, once synchronised; may be null
  double bytes = 0;                     // read and written, each tensor once
  double flops = 0;                     // of products; 0: bound by bandwidth
};

template <typename T>
struct OperatorCase {
  const char* name;
  OperatorCall<T> (*prepare)(Arrays& arrays, const BlockShape& shape);
};

// The operators of a GPT's block, and those of a Llama's which the former has not. T is float or
// BFloat16.
template <typename T>
std::vector<OperatorCase<T>> GptOperators();
template <typename T>
std::vector<OperatorCase<T>> LlamaOperators();

// The parts of the lists above, in tables of their own files.
template <typename T>
std::vector<OperatorCase<T>> ProductCases();  // of both
template <typename T>
std::vector<OperatorCase<T>> ElementCases();
template <typename T>
std::vector<OperatorCase<T>> NormCases();
template <typename T>
std::vector<OperatorCase<T>> LlamaElementCases();

}  // namespace longhaul::gpu_check

#endif  // LONGHAUL_TESTS_BENCH_GPU_OPERATORS_H_
