// A libnvidia-ml.so.1 for tests, with the answers that a file says (its path is in FAKE_NVML):
// lines of a word and a number. `init`, `handle`, `temperature` and `errors` are what these calls
// return (0: success, 15: the card is lost); `celsius` and `uncorrected`, `rows_pending`,
// `rows_failed` are what they tell. What no line says is 0; without a file there is no card.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

namespace {

int Answer(const std::string& word, int otherwise = 0) {
  const char* const path = std::getenv("FAKE_NVML");
  std::ifstream file(path == nullptr ? "" : path);
  std::string found;
  for (int number = 0; file >> found >> number;) {
    if (found == word) return number;
  }
  return otherwise;
}

constexpr int kNotSupported = 3;
constexpr int kNotFound = 6;

}  // namespace

extern "C" {

int nvmlInit_v2() { return Answer("init"); }
int nvmlShutdown() { return 0; }
int nvmlSystemGetDriverVersion(char* version, unsigned length) {
  std::snprintf(version, length, "580.65.06");
  return 0;
}
int nvmlDeviceGetHandleByUUID(const char*, void** device) {
  *device = nullptr;
  const char* const path = std::getenv("FAKE_NVML");
  return path == nullptr || !std::ifstream(path) ? kNotFound : Answer("handle");
}
int nvmlDeviceGetTemperature(void*, int, unsigned* celsius) {
  *celsius = static_cast<unsigned>(Answer("celsius"));
  return Answer("temperature");
}
int nvmlDeviceGetPowerUsage(void*, unsigned* milliwatts) {
  *milliwatts = 412500;
  return 0;
}
int nvmlDeviceGetClockInfo(void*, int type, unsigned* megahertz) {
  *megahertz = type == 2 ? 2619 : 1980;
  return 0;
}
int nvmlDeviceGetTotalEccErrors(void*, int, int, unsigned long long* count) {  // NOLINT
  *count = static_cast<unsigned long long>(Answer("uncorrected"));             // NOLINT
  return Answer("errors");
}
int nvmlDeviceGetUtilizationRates(void*, unsigned* rates) {
  rates[0] = 75;
  rates[1] = 20;
  return 0;
}
// As a card that shares its memory with the host.
int nvmlDeviceGetMemoryInfo(void*, void*) { return kNotSupported; }
int nvmlDeviceGetRemappedRows(void*, unsigned* corrected, unsigned* uncorrected, unsigned* pending,
                              unsigned* failed) {
  *corrected = *uncorrected = 0;
  *pending = static_cast<unsigned>(Answer("rows_pending"));
  *failed = static_cast<unsigned>(Answer("rows_failed"));
  return 0;
}

}  // extern "C"
