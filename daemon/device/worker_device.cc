#include "daemon/device/worker_device.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/card_memory.h"
#include "base/status_copy.h"
#include "base/status_macros.h"
#include "daemon/device/nvml.h"
#include "daemon/node_probe.h"

namespace longhaul::daemon {
namespace {

// Of a processor's memory that is free, for the rest of the process and of the machine.
constexpr double kMemoryShare = 0.8;
constexpr int64_t kMiB = 1 << 20;
// Less holds no stage of any model.
constexpr int64_t kCardMemoryMin = 16 * kMiB;

std::string CardName(int device) { return absl::StrCat("cuda:", device); }

std::string Mebibytes(int64_t bytes) { return absl::StrCat(bytes / kMiB, " MiB"); }

control::CardFacts CardFactsOf(const compute::CudaDeviceFacts& facts) {
  control::CardFacts card;
  card.compute_capability = absl::StrCat(facts.major, ".", facts.minor);
  card.driver = absl::StrCat("CUDA ", facts.driver_cuda_version);
  card.uuid = facts.uuid;
  card.pci_bus_id = facts.pci_bus_id;
  card.memory_bytes = facts.memory_bytes;
  return card;
}

}  // namespace

absl::StatusOr<int64_t> UsableCardMemory(absl::string_view device,
                                         const compute::CudaMemory& memory, int64_t cap_bytes) {
  const int64_t margin = CardMemoryMargin(memory.total_bytes);
  const int64_t usable = memory.free_bytes - margin;
  if (usable >= kCardMemoryMin) return cap_bytes > 0 ? std::min(usable, cap_bytes) : usable;
  return absl::ResourceExhaustedError(
      absl::StrCat(device, " has no memory left: ", Mebibytes(memory.free_bytes), " of ",
                   Mebibytes(memory.total_bytes), " are free, and ", Mebibytes(margin),
                   " of them are kept for libraries; `nvidia-smi` shows who uses the card"));
}

absl::StatusOr<std::unique_ptr<WorkerDevice>> WorkerDevice::Open(const WorkerConfig& config,
                                                                 const HostResources& host,
                                                                 Clock& clock, const Log& log) {
  auto device = std::unique_ptr<WorkerDevice>(new WorkerDevice(config, clock));
  LH_RETURN_IF_ERROR(config.cuda_device ? device->OpenCard(config, log)
                                        : device->OpenProcessor(config, host));
  return device;
}

absl::Status WorkerDevice::OpenProcessor(const WorkerConfig& config, const HostResources& host) {
  facts_.threads = config.threads > 0 ? config.threads : host.cores;
  facts_.device_name = host.processor;
  facts_.memory_bytes =
      config.memory_bytes > 0
          ? config.memory_bytes
          : static_cast<int64_t>(kMemoryShare * static_cast<double>(host.memory_bytes));
  LH_ASSIGN_OR_RETURN(const NodeMeasures measures,
                      MeasureNode(facts_.threads, facts_.memory_bytes, clock_));
  facts_.numeric_class = measures.numeric_class;
  facts_.flops_per_second = measures.flops_per_second;
  facts_.bytes_per_second = measures.bytes_per_second;
  facts_.process_bytes = OwnResidentBytes();
  return absl::OkStatus();
}

absl::Status WorkerDevice::OpenCard(const WorkerConfig& config, const Log& log) {
  LH_ASSIGN_OR_RETURN(const compute::CudaDeviceFacts card, compute::ReadCudaDevice(*cuda_));
  const std::string name = CardName(*cuda_);
  LH_ASSIGN_OR_RETURN(claim_, DeviceClaim::Take(name, card.uuid, config.share_device));
  facts_.device_kind = control::kCudaDevice;
  facts_.device_name = card.name;
  facts_.card = CardFactsOf(card);
  LH_RETURN_IF_ERROR(WatchCard(log));
  LH_ASSIGN_OR_RETURN(const std::unique_ptr<compute::Backend> backend,
                      compute::MakeCudaBackend(*cuda_, clock_));
  LH_ASSIGN_OR_RETURN(const compute::CudaMemory memory, compute::ReadCudaMemory(*cuda_));
  LH_ASSIGN_OR_RETURN(facts_.memory_bytes, UsableCardMemory(name, memory, config.memory_bytes));
  if (facts_.memory_bytes < config.memory_bytes) {
    log.Warning("the card has less memory free than the configuration's `memory`; using that",
                {{"device", name},
                 {"memory", Mebibytes(config.memory_bytes)},
                 {"using", Mebibytes(facts_.memory_bytes)}});
  }
  LH_ASSIGN_OR_RETURN(const NodeMeasures measures,
                      MeasureCard(*backend, facts_.memory_bytes, clock_));
  facts_.numeric_class = measures.numeric_class;
  facts_.flops_per_second = measures.flops_per_second;
  facts_.bfloat16_flops_per_second = measures.bfloat16_flops_per_second;
  facts_.bytes_per_second = measures.bytes_per_second;
  return absl::OkStatus();
}

absl::Status WorkerDevice::WatchCard(const Log& log) {
  absl::StatusOr<std::unique_ptr<CardMonitor>> monitor = OpenNvml(facts_.card->uuid);
  if (absl::IsNotFound(monitor.status())) {
    log.Warning("the card's temperature, power and memory errors are not watched",
                {{"reason", std::string(monitor.status().message())}});
    return absl::OkStatus();
  }
  if (!monitor.ok()) return Annotate(monitor.status(), CardName(*cuda_));
  const std::string driver = (*monitor)->driver_version();
  if (!driver.empty()) facts_.card->driver = absl::StrCat(driver, " (", facts_.card->driver, ")");
  watch_ = std::make_unique<CardWatch>(*std::move(monitor), clock_);
  return absl::OkStatus();
}

void WorkerDevice::Describe(worker::NodeFacts& facts) const {
  facts.device_kind = facts_.device_kind;
  facts.device_name = facts_.device_name;
  facts.card = facts_.card;
  facts.numeric_class = facts_.numeric_class;
  facts.threads = facts_.threads;
  facts.memory_bytes = facts_.memory_bytes;
  facts.process_bytes = facts_.process_bytes;
  facts.flops_per_second = facts_.flops_per_second;
  facts.bfloat16_flops_per_second = facts_.bfloat16_flops_per_second;
  facts.bytes_per_second = facts_.bytes_per_second;
}

absl::StatusOr<std::unique_ptr<compute::Backend>> WorkerDevice::MakeBackend() {
  if (!cuda_) return compute::MakeCpuBackend(facts_.threads);
  LH_RETURN_IF_ERROR(health());
  absl::StatusOr<std::unique_ptr<compute::Backend>> backend =
      compute::MakeCudaBackend(*cuda_, clock_);
  if (absl::IsUnavailable(backend.status())) Fail(backend.status());
  return backend;
}

std::optional<control::CardReadings> WorkerDevice::TakeReadings() {
  return watch_ == nullptr ? std::nullopt : watch_->TakeReadings();
}

void WorkerDevice::Fail(const absl::Status& reason) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (failed_.ok()) failed_ = OwnCopy(reason);
}

absl::Status WorkerDevice::health() const {
  absl::Status status;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    status = OwnCopy(failed_);
  }
  if (status.ok() && watch_ != nullptr) status = watch_->health();
  return status.ok() ? status : Annotate(status, CardName(cuda_.value_or(0)));
}

}  // namespace longhaul::daemon
