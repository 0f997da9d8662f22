#include "daemon/node_probe.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "compute/backend/backend.h"
#include "compute/ops/linear.h"

namespace longhaul::daemon {
namespace {

constexpr absl::Duration kMeasureFor = absl::Milliseconds(150);
constexpr absl::Duration kTurnMax = absl::Seconds(5);
constexpr int kRoundsMax = 10000;

// Holds a name of the abstract socket namespace, which one process of a host can hold at a time and
// which the system takes back in any case. Gives up after kTurnMax: a measurement that others
// disturb is better than none.
class HostTurn {
 public:
  explicit HostTurn(Clock& clock) {
    constexpr char kName[] = "\0longhaul-probe";
    descriptor_ = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, kName, sizeof kName);
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + sizeof kName);
    const absl::Time give_up = clock.Now() + kTurnMax;
    while (descriptor_ >= 0 && clock.Now() < give_up &&
           bind(descriptor_, reinterpret_cast<const sockaddr*>(&address), size) != 0) {
      std::unique_lock<std::mutex> lock(mutex_);
      clock.WaitUntil(lock, changed_, clock.Now() + absl::Milliseconds(20), [] { return false; });
    }
  }
  ~HostTurn() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  HostTurn(const HostTurn&) = delete;
  HostTurn& operator=(const HostTurn&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int descriptor_ = -1;
};

// Seconds of the fastest of repeated calls, which the rest of the machine disturbed least.
absl::StatusOr<double> FastestSeconds(Clock& clock, absl::FunctionRef<absl::Status()> work) {
  LH_RETURN_IF_ERROR(work());
  absl::Duration fastest = absl::InfiniteDuration();
  const absl::Time end = clock.Now() + kMeasureFor;
  for (int round = 0; round < kRoundsMax; ++round) {
    const absl::Time start = clock.Now();
    LH_RETURN_IF_ERROR(work());
    const absl::Time now = clock.Now();
    fastest = std::min(fastest, now - start);
    if (now >= end) break;
  }
  return std::max(absl::ToDoubleSeconds(fastest), 1e-9);
}

absl::StatusOr<double> MatrixRate(compute::Backend& backend, int threads, Clock& clock) {
  // Rows enough for every thread to have whole tiles.
  const compute::LinearShape shape = {.rows = int64_t{384} * threads, .in = 384, .out = 384};
  const std::vector<float> input(static_cast<size_t>(shape.rows * shape.in), 0.5f);
  const std::vector<float> weight(static_cast<size_t>(shape.out * shape.in), 0.25f);
  std::vector<float> output(static_cast<size_t>(shape.rows * shape.out));
  LH_ASSIGN_OR_RETURN(const double seconds, FastestSeconds(clock, [&] {
                        return compute::LinearForward<float>(backend, shape, input, weight, {},
                                                             absl::MakeSpan(output));
                      }));
  return 2.0 * static_cast<double>(shape.rows * shape.in * shape.out) / seconds;
}

absl::StatusOr<double> CopyRate(compute::Backend& backend, int threads, size_t bytes_each,
                                Clock& clock) {
  const std::vector<char> from(bytes_each * static_cast<size_t>(threads), 1);
  std::vector<char> to(from.size());
  LH_ASSIGN_OR_RETURN(const double seconds, FastestSeconds(clock, [&] {
                        backend.ParallelFor(threads, [&](int64_t task) {
                          const size_t offset = static_cast<size_t>(task) * bytes_each;
                          std::memcpy(to.data() + offset, from.data() + offset, bytes_each);
                        });
                        return absl::OkStatus();
                      }));
  return 2.0 * static_cast<double>(from.size()) / seconds;
}

// What is queued on a card behind each other, as in training: one piece of work alone would be
// measured with the wait for its end.
constexpr int kQueued = 16;
constexpr absl::Duration kEnough = absl::Milliseconds(5);  // of what is queued

// Matrices of one side, of numbers that keep a card as busy as real ones do.
template <typename T>
class CardProducts {
 public:
  static absl::StatusOr<CardProducts> Make(compute::Backend& backend, int64_t side) {
    CardProducts products(backend, side);
    std::vector<T> numbers(products.elements_);
    for (size_t i = 0; i < numbers.size(); ++i) {
      numbers[i] = T(static_cast<float>(i % 251) * 0.01f - 1.f);
    }
    const size_t bytes = numbers.size() * sizeof(T);
    for (std::unique_ptr<compute::Buffer>& matrix : products.matrices_) {
      LH_ASSIGN_OR_RETURN(matrix, backend.Allocate(bytes));
      LH_RETURN_IF_ERROR(backend.CopyToDevice(matrix->data(), numbers.data(), bytes));
    }
    LH_RETURN_IF_ERROR(backend.Synchronize());
    return products;
  }

  absl::Status Run() {
    const compute::LinearShape shape = {.rows = side_, .in = side_, .out = side_};
    for (int product = 0; product < kQueued; ++product) {
      LH_RETURN_IF_ERROR(
          compute::LinearForward<T>(*backend_, shape, Span(0), Span(1), {}, Span(2)));
    }
    return backend_->Synchronize();
  }

  double flops() const {
    const auto side = static_cast<double>(side_);
    return kQueued * 2 * side * side * side;
  }

 private:
  CardProducts(compute::Backend& backend, int64_t side)
      : backend_(&backend), side_(side), elements_(static_cast<size_t>(side * side)) {}
  absl::Span<T> Span(size_t matrix) {
    return absl::MakeSpan(static_cast<T*>(matrices_[matrix]->data()), elements_);
  }

  compute::Backend* backend_;
  int64_t side_;
  size_t elements_;
  std::array<std::unique_ptr<compute::Buffer>, 3> matrices_;
};

// With matrices large enough to keep the card busy for a while.
template <typename T>
absl::StatusOr<double> CardMatrixRate(compute::Backend& backend, int64_t bytes_max, Clock& clock) {
  constexpr int64_t kSideMin = 64, kSideMax = 4096;
  for (int64_t side = kSideMin;; side *= 4) {
    LH_ASSIGN_OR_RETURN(CardProducts<T> products, CardProducts<T>::Make(backend, side));
    LH_RETURN_IF_ERROR(products.Run());
    const absl::Time start = clock.Now();
    LH_RETURN_IF_ERROR(products.Run());
    const bool fits = 16 * 3 * side * side * static_cast<int64_t>(sizeof(T)) <= bytes_max;
    if (clock.Now() - start < kEnough && side < kSideMax && fits) continue;
    LH_ASSIGN_OR_RETURN(const double seconds,
                        FastestSeconds(clock, [&] { return products.Run(); }));
    return products.flops() / seconds;
  }
}

// The same with copies: of more than a card's caches hold, if it is fast.
absl::StatusOr<double> CardCopyRate(compute::Backend& backend, int64_t bytes_max, Clock& clock) {
  constexpr int64_t kBytesMin = 1 << 20, kBytesMax = 256 << 20;
  for (int64_t size = kBytesMin;; size *= 4) {
    const auto bytes = static_cast<size_t>(size);
    LH_ASSIGN_OR_RETURN(const auto from, backend.Allocate(bytes));
    LH_ASSIGN_OR_RETURN(const auto to, backend.Allocate(bytes));
    const auto run = [&]() -> absl::Status {
      for (int copy = 0; copy < kQueued; ++copy) {
        LH_RETURN_IF_ERROR(backend.Copy(to->data(), from->data(), bytes));
      }
      return backend.Synchronize();
    };
    LH_RETURN_IF_ERROR(run());
    const absl::Time start = clock.Now();
    LH_RETURN_IF_ERROR(run());
    const bool fits = 4 * 2 * size <= bytes_max;
    if (clock.Now() - start < kEnough && size < kBytesMax && fits) continue;
    LH_ASSIGN_OR_RETURN(const double seconds, FastestSeconds(clock, run));
    return 2.0 * kQueued * static_cast<double>(bytes) / seconds;
  }
}

}  // namespace

size_t CopyBytesEach(int threads, int64_t memory_bytes) {
  constexpr uint64_t kEachMax = 16 << 20, kTotalMax = 512 << 20, kEachMin = 64 << 10;
  const uint64_t share = static_cast<uint64_t>(std::max<int64_t>(memory_bytes, 0)) / 8;
  const uint64_t total = share == 0 ? kTotalMax : std::min(kTotalMax, share);
  // Twice: what is read and what is written.
  return std::clamp(total / 2 / static_cast<uint64_t>(std::max(threads, 1)), kEachMin, kEachMax);
}

absl::StatusOr<NodeMeasures> MeasureNode(int threads, int64_t memory_bytes, Clock& clock) {
  const HostTurn turn(clock);
  const std::unique_ptr<compute::Backend> backend = compute::MakeCpuBackend(threads);
  NodeMeasures measures;
  measures.numeric_class = backend->numeric_class();
  LH_ASSIGN_OR_RETURN(measures.flops_per_second, MatrixRate(*backend, threads, clock));
  LH_ASSIGN_OR_RETURN(measures.bytes_per_second,
                      CopyRate(*backend, threads, CopyBytesEach(threads, memory_bytes), clock));
  return measures;
}

absl::StatusOr<NodeMeasures> MeasureCard(compute::Backend& backend, int64_t memory_bytes,
                                         Clock& clock) {
  const HostTurn turn(clock);
  NodeMeasures measures;
  measures.numeric_class = backend.numeric_class();
  const int64_t bytes_max = memory_bytes / 8;
  LH_ASSIGN_OR_RETURN(measures.flops_per_second, CardMatrixRate<float>(backend, bytes_max, clock));
  if (backend.has_bfloat16()) {
    LH_ASSIGN_OR_RETURN(measures.bfloat16_flops_per_second,
                        CardMatrixRate<compute::BFloat16>(backend, bytes_max, clock));
  }
  LH_ASSIGN_OR_RETURN(measures.bytes_per_second, CardCopyRate(backend, bytes_max, clock));
  return measures;
}

}  // namespace longhaul::daemon
