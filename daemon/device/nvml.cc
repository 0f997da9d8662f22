#include "daemon/device/nvml.h"

#include <dlfcn.h>

#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace longhaul::daemon {
namespace {

// The few of NVML's declarations that are used; its interface keeps them over versions.
using Device = struct NvmlDevice*;
using Return = int;
constexpr Return kSuccess = 0;
constexpr Return kNotFound = 6;
constexpr Return kGpuIsLost = 15;
constexpr Return kResetRequired = 16;
constexpr int kTemperatureOfGpu = 0;
constexpr int kClockOfProcessors = 1;
constexpr int kClockOfMemory = 2;
constexpr int kUncorrectedErrors = 1;
constexpr int kSinceDriverLoad = 0;
struct Utilization {
  unsigned gpu, memory;  // percent of the time
};
struct Memory {
  unsigned long long total, free, used;  // NOLINT: as NVML declares them
};

// A function of the library; one that this version of it does not have gives kAbsent.
template <typename... Arguments>
class Function {
 public:
  static constexpr Return kAbsent = -1;

  void Find(void* library, const char* name) {
    call_ = reinterpret_cast<Return (*)(Arguments...)>(dlsym(library, name));
  }
  Return operator()(Arguments... arguments) const {
    return call_ == nullptr ? kAbsent : call_(arguments...);
  }

 private:
  Return (*call_)(Arguments...) = nullptr;
};

struct Functions {
  explicit Functions(void* library) {
    init.Find(library, "nvmlInit_v2");
    shutdown.Find(library, "nvmlShutdown");
    handle_by_uuid.Find(library, "nvmlDeviceGetHandleByUUID");
    driver_version.Find(library, "nvmlSystemGetDriverVersion");
    temperature.Find(library, "nvmlDeviceGetTemperature");
    power.Find(library, "nvmlDeviceGetPowerUsage");
    clock.Find(library, "nvmlDeviceGetClockInfo");
    errors.Find(library, "nvmlDeviceGetTotalEccErrors");
    utilization.Find(library, "nvmlDeviceGetUtilizationRates");
    memory.Find(library, "nvmlDeviceGetMemoryInfo");
    remapped_rows.Find(library, "nvmlDeviceGetRemappedRows");
    retirement_pending.Find(library, "nvmlDeviceGetRetiredPagesPendingStatus");
  }

  Function<> init, shutdown;
  Function<const char*, Device*> handle_by_uuid;
  Function<char*, unsigned> driver_version;
  Function<Device, int, unsigned*> temperature;
  Function<Device, unsigned*> power;  // milliwatts
  Function<Device, int, unsigned*> clock;
  Function<Device, int, int, unsigned long long*> errors;  // NOLINT: as NVML declares it
  Function<Device, Utilization*> utilization;
  Function<Device, Memory*> memory;
  // Corrected, uncorrected, whether one waits for a reset, whether one could not be remapped.
  Function<Device, unsigned*, unsigned*, unsigned*, unsigned*> remapped_rows;
  Function<Device, int*> retirement_pending;
};

absl::Status Lost(const std::string& uuid, const char* why) {
  return absl::UnavailableError(absl::StrCat("card ", uuid, " ", why));
}

class NvmlCard final : public CardMonitor {
 public:
  // Takes `library`, an open one.
  NvmlCard(void* library, std::string uuid)
      : library_(library), call_(library), uuid_(std::move(uuid)) {}
  ~NvmlCard() override {
    if (ready_) call_.shutdown();
    dlclose(library_);
  }
  NvmlCard(const NvmlCard&) = delete;
  NvmlCard& operator=(const NvmlCard&) = delete;

  absl::Status Start() {
    const Return started = call_.init();
    if (started != kSuccess) {
      return absl::NotFoundError(
          absl::StrCat("NVIDIA's management library does not start (its error ", started, ")"));
    }
    ready_ = true;
    const Return found = call_.handle_by_uuid(uuid_.c_str(), &device_);
    LH_RETURN_IF_ERROR(CheckThere(found));
    if (found != kSuccess) {
      return absl::NotFoundError(
          absl::StrCat("NVIDIA's management library ",
                       found == kNotFound ? "does not know" : "says nothing of", " card ", uuid_));
    }
    std::array<char, 81> version = {};
    if (call_.driver_version(version.data(), version.size() - 1) == kSuccess) {
      driver_version_ = version.data();
    }
    return Read().status();
  }

  std::string driver_version() const override { return driver_version_; }

  absl::StatusOr<control::CardReadings> Read() override {
    LH_RETURN_IF_ERROR(CheckMemoryIsSound());
    control::CardReadings now;
    unsigned number = 0;
    const Return temperature = call_.temperature(device_, kTemperatureOfGpu, &number);
    LH_RETURN_IF_ERROR(CheckThere(temperature));
    if (temperature == kSuccess) now.temperature_celsius = number;
    if (call_.power(device_, &number) == kSuccess) now.power_watts = number * 1e-3;
    if (call_.clock(device_, kClockOfProcessors, &number) == kSuccess) now.core_megahertz = number;
    if (call_.clock(device_, kClockOfMemory, &number) == kSuccess) now.memory_megahertz = number;
    Utilization utilization = {};
    if (call_.utilization(device_, &utilization) == kSuccess) {
      now.utilization = utilization.gpu * 1e-2;
    }
    Memory memory = {};
    if (call_.memory(device_, &memory) == kSuccess) {
      now.memory_used_bytes = static_cast<int64_t>(memory.used);
    }
    unsigned long long errors = 0;  // NOLINT: as NVML declares it
    const Return counted = call_.errors(device_, kUncorrectedErrors, kSinceDriverLoad, &errors);
    LH_RETURN_IF_ERROR(CheckThere(counted));
    if (counted == kSuccess) now.uncorrected_errors = static_cast<int64_t>(errors);
    return now;
  }

 private:
  absl::Status CheckThere(Return answer) const {
    if (answer == kGpuIsLost) {
      return Lost(uuid_, "is lost: it fell off the bus or cannot be reached; reboot the host");
    }
    if (answer == kResetRequired) {
      return Lost(uuid_, "must be reset before it can be used: nvidia-smi --gpu-reset, or reboot");
    }
    return absl::OkStatus();
  }

  // Rows or pages of the card's memory that had errors are replaced by spare ones, with a reset.
  absl::Status CheckMemoryIsSound() const {
    unsigned corrected = 0, uncorrected = 0, pending = 0, failed = 0;
    const Return rows = call_.remapped_rows(device_, &corrected, &uncorrected, &pending, &failed);
    LH_RETURN_IF_ERROR(CheckThere(rows));
    if (rows == kSuccess && failed != 0) {
      return Lost(uuid_, "has memory errors and no spare rows left; replace it");
    }
    int pages_pending = 0;
    const bool pages = call_.retirement_pending(device_, &pages_pending) == kSuccess;
    if ((rows == kSuccess && pending != 0) || (pages && pages_pending != 0)) {
      return Lost(uuid_,
                  "has memory errors that are out of the way only after a reset: nvidia-smi "
                  "--gpu-reset, or reboot");
    }
    return absl::OkStatus();
  }

  void* const library_;
  const Functions call_;
  const std::string uuid_;
  bool ready_ = false;
  Device device_ = nullptr;
  std::string driver_version_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<CardMonitor>> OpenNvml(const std::string& uuid,
                                                      const char* library) {
  void* const handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const why = dlerror();
    return absl::NotFoundError(absl::StrCat("NVIDIA's management library cannot be opened: ",
                                            why == nullptr ? library : why));
  }
  auto card = std::make_unique<NvmlCard>(handle, uuid);
  LH_RETURN_IF_ERROR(card->Start());
  return card;
}

}  // namespace longhaul::daemon
