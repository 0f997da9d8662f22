#include <chrono>

int64_t Now() { return std::chrono::steady_clock::now().time_since_epoch().count(); }
