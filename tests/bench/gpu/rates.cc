#include "tests/bench/gpu/rates.h"

#include "absl/time/time.h"
#include "compute/ops/linear.h"

namespace longhaul::gpu_check {

CallTimer::CallTimer(compute::Backend& backend, const Effort& effort)
    : backend_(backend),
      effort_(effort),
      arrays_(backend),
      flushed_(arrays_.Zeros<char>(effort.flushed_bytes)) {
  auto timer = backend.MakeTimer();
  Check(timer.status());
  timer_ = *std::move(timer);
  LH_CHECK(timer_ != nullptr, "the backend has no clock of its own");
}

double CallTimer::Seconds(absl::FunctionRef<absl::Status()> call) {
  Check(call());
  Check(backend_.Synchronize());
  for (int i = 0; i < effort_.repeats; ++i) {
    Check(backend_.Zero(flushed_.data(), flushed_.size()));
    Check(timer_->Begin());
    Check(call());
    Check(timer_->End());
  }
  Check(backend_.Synchronize());
  const auto total = timer_->Take();
  Check(total.status());
  return absl::ToDoubleSeconds(*total) / effort_.repeats;
}

template <typename T>
CardRates MeasureCard(compute::Backend& backend, const Effort& effort) {
  CallTimer timer(backend, effort);
  CardRates rates;
  {
    Arrays arrays(backend);
    const auto from = arrays.Zeros<char>(effort.copy_bytes);
    const auto to = arrays.Zeros<char>(effort.copy_bytes);
    const double seconds =
        timer.Seconds([&] { return backend.Copy(to.data(), from.data(), from.size()); });
    rates.bytes_per_second = 2 * static_cast<double>(effort.copy_bytes) / seconds;
  }
  Arrays arrays(backend);
  const int64_t extent = effort.extent;
  const auto a = arrays.Values<T>(extent * extent);
  const auto b = arrays.Values<T>(extent * extent);
  const auto c = arrays.Zeros<T>(extent * extent);
  const double seconds = timer.Seconds([&] {
    return compute::LinearForward<T>(backend, {extent, extent, extent}, a, b, {}, c);
  });
  const double n = static_cast<double>(extent);
  rates.flops = 2 * n * n * n / seconds;
  return rates;
}

template CardRates MeasureCard<float>(compute::Backend&, const Effort&);
template CardRates MeasureCard<compute::BFloat16>(compute::Backend&, const Effort&);

}  // namespace longhaul::gpu_check
