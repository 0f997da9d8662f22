// May speak of printf, std::mutex and time().
#include <string>

std::string Pure(const Timeline& timeline) {
  const std::string text = "printf(time(nullptr))";
  return text + R"(std::mutex sleep_for)" + std::to_string(timeline.time(1'000)) + 'c';
}
