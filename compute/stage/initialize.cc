#include "compute/stage/initialize.h"

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "base/rng.h"
#include "base/status_macros.h"

namespace longhaul::compute {
namespace {

constexpr int64_t kTaskElements = 1 << 14;  // even, so that no pair is split
constexpr int64_t kTasksAtOnce = 1 << 7;    // bounds what is held on the host

// Elements [begin, begin + values.size()) of the tensor; `begin` is even.
template <typename T>
void FillNormal(double deviation, int index, uint64_t seed, int64_t begin, absl::Span<T> values) {
  for (size_t i = 0; i < values.size(); i += 2) {
    const auto bits = RandomBits(seed, RandomStream::kInitialWeights, static_cast<uint32_t>(index),
                                 0, static_cast<uint64_t>(begin + static_cast<int64_t>(i)) / 2);
    const auto pair = RandomNormalPair(bits);
    values[i] = static_cast<T>(deviation * pair[0]);
    if (i + 1 < values.size()) values[i + 1] = static_cast<T>(deviation * pair[1]);
  }
}

template <typename T>
void Fill(const model::Parameter& parameter, int index, uint64_t seed, int64_t begin,
          absl::Span<T> values) {
  switch (parameter.init.kind) {
    case model::InitKind::kZeros:
      std::fill(values.begin(), values.end(), T{0});
      return;
    case model::InitKind::kOnes:
      std::fill(values.begin(), values.end(), T{1});
      return;
    case model::InitKind::kNormal:
      FillNormal(parameter.init.standard_deviation, index, seed, begin, values);
      return;
  }
  LH_CHECK(false, "initializer kind ", static_cast<int>(parameter.init.kind));
}

// As Fill, over the backend's threads where they are the host's.
template <typename T>
void FillTasks(Backend& backend, const model::Parameter& parameter, int index, uint64_t seed,
               int64_t begin, absl::Span<T> values) {
  const int64_t elements = static_cast<int64_t>(values.size());
  const auto fill = [&](int64_t task) {
    const int64_t first = task * kTaskElements;
    Fill(parameter, index, seed, begin + first,
         values.subspan(first, std::min(kTaskElements, elements - first)));
  };
  const int64_t tasks = (elements + kTaskElements - 1) / kTaskElements;
  if (backend.kind() == DeviceKind::kCpu) return backend.ParallelFor(tasks, fill);
  for (int64_t task = 0; task < tasks; ++task) fill(task);
}

}  // namespace

template <typename T>
absl::Status InitializeParameter(Backend& backend, const model::Parameter& parameter, int index,
                                 uint64_t seed, absl::Span<T> weights) {
  const int64_t elements = static_cast<int64_t>(weights.size());
  LH_CHECK(elements == parameter.elements(), parameter.name);
  constexpr int64_t kElementsAtOnce = kTaskElements * kTasksAtOnce;
  std::vector<T> host(std::min(elements, kElementsAtOnce));
  for (int64_t begin = 0; begin < elements; begin += kElementsAtOnce) {
    const auto chunk = absl::MakeSpan(host).first(std::min(kElementsAtOnce, elements - begin));
    FillTasks(backend, parameter, index, seed, begin, chunk);
    LH_RETURN_IF_ERROR(
        backend.CopyToDevice(weights.data() + begin, chunk.data(), chunk.size() * sizeof(T)));
    LH_RETURN_IF_ERROR(backend.Synchronize());
  }
  return absl::OkStatus();
}

template absl::Status InitializeParameter(Backend&, const model::Parameter&, int, uint64_t,
                                          absl::Span<float>);
template absl::Status InitializeParameter(Backend&, const model::Parameter&, int, uint64_t,
                                          absl::Span<double>);

}  // namespace longhaul::compute
