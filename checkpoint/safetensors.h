// The safetensors file format (github.com/huggingface/safetensors): 8-byte little-endian header
// length, JSON header, raw tensors.
#ifndef LONGHAUL_CHECKPOINT_SAFETENSORS_H_
#define LONGHAUL_CHECKPOINT_SAFETENSORS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace longhaul::checkpoint {

struct TensorView {
  std::string name;
  std::string dtype = "F32";  // F32 and F64 are written; any is listed when reading
  std::vector<int64_t> shape;
  absl::string_view bytes;  // points into memory of the caller
};

// Deterministic: equal tensors in equal order and equal metadata give equal bytes. Names must be
// UTF-8, each given once, and `bytes` must fit dtype times shape.
std::string WriteSafetensors(absl::Span<const TensorView> tensors,
                             const std::map<std::string, std::string>& metadata);

// What such a file begins with; the tensors' bytes follow in this order. `TensorView::bytes` is not
// read, so that they need not be in memory together.
std::string SafetensorsHeader(absl::Span<const TensorView> tensors,
                              const std::map<std::string, std::string>& metadata);

// Views into `bytes`. DataLoss naming the tensor for anything inconsistent: header beyond the file,
// bad JSON, duplicate names, offsets that overlap, leave holes, overflow or do not fit dtype times
// shape, and unknown dtypes. Tensors are in the order of their offsets.
struct SafetensorsFile {
  std::vector<TensorView> tensors;
  std::map<std::string, std::string> metadata;
  const TensorView* Find(absl::string_view name) const;
};
absl::StatusOr<SafetensorsFile> ParseSafetensors(absl::string_view bytes);

}  // namespace longhaul::checkpoint

#endif  // LONGHAUL_CHECKPOINT_SAFETENSORS_H_
