// Device memory between sentinels, for tests of operators on any backend.
#ifndef LONGHAUL_COMPUTE_TESTING_GUARDED_BUFFER_H_
#define LONGHAUL_COMPUTE_TESTING_GUARDED_BUFFER_H_

#include <limits>
#include <memory>
#include <type_traits>
#include <vector>

#include "absl/types/span.h"
#include "base/check.h"
#include "compute/backend/backend.h"
#include "gtest/gtest.h"

namespace longhaul::compute {

// Owns elements on a device with sentinels on both sides, which Read checks. Values are exchanged
// as double. An odd number of sentinels leaves the elements aligned to T only, but for floats and
// BFloat16 on cards, whose loads of 16 bytes shall be tested as well as those of doubles one by
// one.
template <typename T>
class GuardedBuffer {
 public:
  GuardedBuffer(Backend& backend, absl::Span<const double> values)
      : backend_(backend),
        elements_(values.size()),
        sentinels_(backend.kind() == DeviceKind::kCuda && sizeof(T) < 8 ? 32 : 17) {
    std::vector<T> all(elements_ + 2 * sentinels_, Sentinel());
    for (size_t i = 0; i < elements_; ++i) all[sentinels_ + i] = static_cast<T>(values[i]);
    auto buffer = backend_.Allocate(all.size() * sizeof(T));
    LH_CHECK(buffer.ok(), buffer.status().ToString());
    buffer_ = *std::move(buffer);
    Check(backend_.CopyToDevice(buffer_->data(), all.data(), buffer_->bytes()));
    Check(backend_.Synchronize());
  }

  // Filled with NaN: an operator that reads its output, or leaves a part of it, shows.
  static GuardedBuffer Poisoned(Backend& backend, size_t elements) {
    return GuardedBuffer(backend,
                         std::vector<double>(elements, std::numeric_limits<double>::quiet_NaN()));
  }

  absl::Span<T> span() { return {static_cast<T*>(buffer_->data()) + sentinels_, elements_}; }
  absl::Span<const T> constant() { return span(); }

  // The values now; fails the test if a sentinel was overwritten.
  std::vector<double> Read() {
    std::vector<T> all(elements_ + 2 * sentinels_);
    Check(backend_.CopyToHost(all.data(), buffer_->data(), buffer_->bytes()));
    Check(backend_.Synchronize());
    for (size_t i = 0; i < sentinels_; ++i) {
      EXPECT_EQ(all[i], Sentinel()) << "overwritten " << sentinels_ - i << " before the buffer";
      EXPECT_EQ(all[sentinels_ + elements_ + i], Sentinel())
          << "overwritten " << i + 1 << " after the buffer";
    }
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(sentinels_);
    return {first, first + static_cast<std::ptrdiff_t>(elements_)};
  }

 private:
  static T Sentinel() { return static_cast<T>(-54321); }
  static void Check(const absl::Status& status) { LH_CHECK(status.ok(), status.ToString()); }

  Backend& backend_;
  size_t elements_;
  size_t sentinels_;  // on each side
  std::unique_ptr<Buffer> buffer_;
};

}  // namespace longhaul::compute

#endif  // LONGHAUL_COMPUTE_TESTING_GUARDED_BUFFER_H_
