#include "compute/ops/shape_check.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace longhaul::compute {

absl::Status CheckExtents(absl::string_view op, std::initializer_list<NamedExtent> extents) {
  constexpr int64_t kExtentMax = std::numeric_limits<int32_t>::max();
  for (const NamedExtent& extent : extents) {
    if (extent.value < 1 || extent.value > kExtentMax) {
      return absl::InvalidArgumentError(absl::StrCat(op, ": ", extent.name, " is ", extent.value,
                                                     ", not between 1 and ", kExtentMax));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckElements(absl::string_view op, absl::string_view tensor, size_t elements,
                           std::initializer_list<int64_t> shape) {
  int64_t product = 1;
  bool fits = true;
  for (const int64_t extent : shape) {
    fits = fits && !__builtin_mul_overflow(product, extent, &product);
  }
  if (fits && elements == static_cast<size_t>(product)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(op, ": ", tensor, " has ", elements,
                                                 " elements; its shape is [",
                                                 absl::StrJoin(shape, ", "), "]"));
}

absl::Status CheckPitch(absl::string_view op, int64_t width, int64_t pitch) {
  if (pitch >= width) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(op, ": rows of ", width, " elements begin only ", pitch, " apart"));
}

absl::Status CheckEpsilon(absl::string_view op, double epsilon) {
  if (std::isfinite(epsilon) && epsilon >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(op, ": epsilon is ", epsilon, ", not finite and at least 0"));
}

absl::Status CheckIds(absl::string_view op, const IdRange& range, const int32_t* ids,
                      int64_t count) {
  for (int64_t row = 0; row < count; ++row) {
    if ((ids[row] < 0 || ids[row] >= range.bound) && ids[row] != range.ignored) {
      return absl::OutOfRangeError(absl::StrCat(op, ": ", range.what, " ", ids[row], " of row ",
                                                row, " is outside the vocabulary of ",
                                                range.bound));
    }
  }
  return absl::OkStatus();
}

}  // namespace longhaul::compute
