// Checks that the operators share: extents are sane and spans have the elements that they imply.
#ifndef LONGHAUL_COMPUTE_OPS_SHAPE_CHECK_H_
#define LONGHAUL_COMPUTE_OPS_SHAPE_CHECK_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace longhaul::compute {

struct NamedExtent {
  absl::string_view name;
  int64_t value;
};

// InvalidArgument naming the first extent outside [1, 2^31).
absl::Status CheckExtents(absl::string_view op, std::initializer_list<NamedExtent> extents);

// InvalidArgument unless `elements` is the product of `shape`, whose extents have been checked;
// also when that product does not fit in 63 bits. `tensor` names the span.
absl::Status CheckElements(absl::string_view op, absl::string_view tensor, size_t elements,
                           std::initializer_list<int64_t> shape);

// InvalidArgument if rows of `width` elements begin fewer than that apart.
absl::Status CheckPitch(absl::string_view op, int64_t width, int64_t pitch);

// InvalidArgument unless what a norm adds to a variance is finite and at least 0.
absl::Status CheckEpsilon(absl::string_view op, double epsilon);

// OutOfRange naming the first row whose id is neither in [0, bound) nor `ignored`.
struct IdRange {
  absl::string_view what;  // "token"
  int64_t bound;
  int32_t ignored;  // a value in [0, bound) if nothing is ignored
};
absl::Status CheckIds(absl::string_view op, const IdRange& range, const int32_t* ids,
                      int64_t count);

}  // namespace longhaul::compute

#endif  // LONGHAUL_COMPUTE_OPS_SHAPE_CHECK_H_
