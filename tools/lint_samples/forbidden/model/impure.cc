#include <iostream>
#include <thread>

#include "base/clock.h"

void Impure() {
  std::cout << 1;
  printf("1");
  std::mutex mutex;
  const int drawn = rand();
  const auto now = time(nullptr);
  const absl::Time clock = RealClock().Now();
}
