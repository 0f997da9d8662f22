// A deliberate data race: the ThreadSanitizer build must report it, or its silence about everything
// else would mean nothing. Never part of any other build.
#include <thread>

#include "base/bounded_queue.h"
#include "base/clock.h"

int main() {
  longhaul::BoundedQueue<int> started(1, longhaul::RealClock());
  int unprotected = 0;
  std::thread other([&] {
    started.TryPush(1);
    ++unprotected;
  });
  started.Pop(absl::InfiniteFuture());
  ++unprotected;
  other.join();
  return unprotected == 2 ? 0 : 1;
}
