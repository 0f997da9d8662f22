// A typed view of one device allocation.
#ifndef LONGHAUL_COMPUTE_STAGE_DEVICE_ARRAY_H_
#define LONGHAUL_COMPUTE_STAGE_DEVICE_ARRAY_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "compute/backend/backend.h"

namespace longhaul::compute {

// Owns zeroed memory for a number of elements; must not outlive the backend. Moving it keeps
// addresses.
template <typename T>
class DeviceArray {
 public:
  DeviceArray() = default;

  static absl::StatusOr<DeviceArray> Allocate(Backend& backend, int64_t elements) {
    DeviceArray array;
    if (elements == 0) return array;
    LH_ASSIGN_OR_RETURN(array.buffer_, backend.Allocate(static_cast<size_t>(elements) * sizeof(T)));
    array.elements_ = elements;
    return array;
  }

  absl::Span<T> Part(int64_t offset, int64_t elements) const {
    LH_CHECK(offset >= 0 && elements >= 0 && offset <= elements_ - elements, "part ", offset, " + ",
             elements, " of ", elements_);
    return absl::MakeSpan(data() + offset, elements);
  }

  T* data() const { return buffer_ ? static_cast<T*>(buffer_->data()) : nullptr; }
  int64_t bytes() const { return buffer_ ? static_cast<int64_t>(buffer_->bytes()) : 0; }

 private:
  std::unique_ptr<Buffer> buffer_;
  int64_t elements_ = 0;
};

}  // namespace longhaul::compute

#endif  // LONGHAUL_COMPUTE_STAGE_DEVICE_ARRAY_H_
