#include "tests/sim/real_time.h"

#include <chrono>
#include <condition_variable>
#include <future>
#include <mutex>
#include <utility>

#include "base/clock.h"
#include "gtest/gtest.h"

namespace longhaul::sim {
namespace {

constexpr absl::Duration kWaitMax = absl::Minutes(2);

}  // namespace

void PassRealTime() {
  std::mutex mutex;
  std::condition_variable never;
  std::unique_lock<std::mutex> lock(mutex);
  RealClock().WaitUntil(lock, never, RealClock().Now() + absl::Milliseconds(1),
                        [] { return false; });
}

bool BecomesTrue(const std::function<bool()>& is_so) {
  const absl::Time deadline = RealClock().Now() + kWaitMax;
  while (!is_so()) {
    if (RealClock().Now() >= deadline) return false;
    PassRealTime();
  }
  return true;
}

absl::StatusOr<std::string> AnswerOf(coordinator::CoordinatorHost& host,
                                     coordinator::CoordinatorHost::PersonEvent event) {
  auto answer = std::async(std::launch::async,
                           [&] { return host.Request(std::move(event), absl::InfiniteFuture()); });
  if (answer.wait_for(absl::ToChronoSeconds(kWaitMax)) != std::future_status::ready) {
    ADD_FAILURE() << "a request was not answered";
    host.Stop();
  }
  return answer.get();
}

}  // namespace longhaul::sim
