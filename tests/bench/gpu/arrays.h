// Device memory with values that depend on nothing but their place, for calls of operators.
#ifndef LONGHAUL_TESTS_BENCH_GPU_ARRAYS_H_
#define LONGHAUL_TESTS_BENCH_GPU_ARRAYS_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "base/check.h"
#include "base/rng.h"
#include "compute/backend/backend.h"

namespace longhaul::gpu_check {

inline void Check(const absl::Status& status) { LH_CHECK(status.ok(), status.ToString()); }

// Owns what it gives out; must not outlive the backend. The n-th tensor of one Arrays has the
// values of the n-th of any other. What fails ends the program: it is a check.
class Arrays {
 public:
  explicit Arrays(compute::Backend& backend) : backend_(backend) {}

  // Multiples of 1/128 in [-1, 1), which every element type holds.
  template <typename T>
  absl::Span<T> Values(int64_t elements) {
    std::vector<T> period;
    for (int64_t i = 0; i < std::min(elements, kPeriod); ++i) {
      period.push_back(static_cast<T>(static_cast<float>(Bits(i) & 255) / 128 - 1));
    }
    return Repeated(period, elements);
  }

  // Integers in [0, bound).
  absl::Span<int32_t> Ids(int64_t elements, int64_t bound) {
    std::vector<int32_t> period;
    for (int64_t i = 0; i < std::min(elements, kPeriod); ++i) {
      period.push_back(static_cast<int32_t>(Bits(i) % static_cast<uint32_t>(bound)));
    }
    return Repeated(period, elements);
  }

  template <typename T>
  absl::Span<T> Zeros(int64_t elements) {
    auto buffer = backend_.Allocate(static_cast<size_t>(elements) * sizeof(T));
    Check(buffer.status());
    buffers_.push_back(*std::move(buffer));
    ++tensors_;
    return {static_cast<T*>(buffers_.back()->data()), static_cast<size_t>(elements)};
  }

  compute::Backend& backend() { return backend_; }

 private:
  static constexpr int64_t kPeriod = 1'000'003;  // a prime: no two rows are alike

  uint32_t Bits(int64_t i) const {
    return RandomBits(1, RandomStream::kInitialWeights, static_cast<uint32_t>(tensors_), 0,
                      static_cast<uint64_t>(i))[0];
  }

  template <typename T>
  absl::Span<T> Repeated(const std::vector<T>& period, int64_t elements) {
    const absl::Span<T> all = Zeros<T>(elements);
    Check(backend_.CopyToDevice(all.data(), period.data(), period.size() * sizeof(T)));
    for (size_t at = period.size(); at < all.size(); at += period.size()) {
      const size_t count = std::min(period.size(), all.size() - at);
      Check(backend_.Copy(all.data() + at, all.data(), count * sizeof(T)));
    }
    Check(backend_.Synchronize());
    return all;
  }

  compute::Backend& backend_;
  std::vector<std::unique_ptr<compute::Buffer>> buffers_;
  int tensors_ = 0;
};

// Elements on a device as doubles.
template <typename T>
std::vector<double> Read(compute::Backend& backend, absl::Span<const T> values) {
  std::vector<T> host(values.size());
  Check(backend.CopyToHost(host.data(), values.data(), values.size() * sizeof(T)));
  Check(backend.Synchronize());
  return {host.begin(), host.end()};
}

}  // namespace longhaul::gpu_check

#endif  // LONGHAUL_TESTS_BENCH_GPU_ARRAYS_H_
