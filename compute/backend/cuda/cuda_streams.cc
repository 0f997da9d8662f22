#include "compute/backend/cuda/cuda_streams.h"

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "compute/backend/cuda/cuda_status.h"

namespace longhaul::compute {
namespace {

class CudaMark final : public Mark {
 public:
  CudaMark(const CudaDevice& device, EventPool& events, cudaEvent_t event)
      : device_(device), events_(events), event_(event) {}
  ~CudaMark() override { events_.GiveBack(event_); }
  CudaMark(const CudaMark&) = delete;
  CudaMark& operator=(const CudaMark&) = delete;

  absl::StatusOr<bool> Reached() override {
    device_.Use();
    const cudaError_t error = cudaEventQuery(event_);
    if (error == cudaErrorNotReady) return false;
    LH_RETURN_IF_ERROR(CudaStatus(error, device_.name()));
    return true;
  }
  cudaEvent_t event() const { return event_; }

 private:
  const CudaDevice& device_;
  EventPool& events_;
  const cudaEvent_t event_;
};

class CudaCopyStream final : public CopyStream {
 public:
  CudaCopyStream(CudaDevice& device, EventPool& events, cudaStream_t stream)
      : device_(device), events_(events), stream_(stream) {}
  ~CudaCopyStream() override { device_.Destroy(stream_); }
  CudaCopyStream(const CudaCopyStream&) = delete;
  CudaCopyStream& operator=(const CudaCopyStream&) = delete;

  absl::Status After(const Mark& mark) override { return LetStreamWait(device_, stream_, mark); }
  absl::Status ToDevice(void* device, const void* host, size_t bytes) override {
    device_.Use();
    return CudaStatus(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream_),
                      absl::StrCat("copy to ", device_.name()));
  }
  absl::Status ToHost(void* host, const void* device, size_t bytes) override {
    device_.Use();
    return CudaStatus(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, stream_),
                      absl::StrCat("copy from ", device_.name()));
  }
  absl::StatusOr<std::unique_ptr<Mark>> MarkNow() override {
    return MarkStream(device_, events_, stream_);
  }

 private:
  CudaDevice& device_;
  EventPool& events_;
  const cudaStream_t stream_;
};

}  // namespace

EventPool::~EventPool() {
  LH_CHECK(free_.size() == made_, made_ - free_.size(), " marks or timers outlive their backend");
  for (const cudaEvent_t event : free_) cudaEventDestroy(event);
}

absl::StatusOr<cudaEvent_t> EventPool::Make() {
  cudaEvent_t event = nullptr;
  device_.Use();
  LH_RETURN_IF_ERROR(CudaStatus(cudaEventCreateWithFlags(&event, flags_),
                                absl::StrCat(device_.name(), ": an event")));
  free_.reserve(++made_);
  return event;
}

absl::Status EventPool::Reserve(size_t events) {
  std::lock_guard lock(mutex_);
  while (free_.size() < events) {
    LH_ASSIGN_OR_RETURN(const cudaEvent_t event, Make());
    free_.push_back(event);
  }
  return absl::OkStatus();
}

absl::StatusOr<cudaEvent_t> EventPool::Take() {
  std::lock_guard lock(mutex_);
  if (free_.empty()) return Make();
  const cudaEvent_t event = free_.back();
  free_.pop_back();
  return event;
}

void EventPool::GiveBack(cudaEvent_t event) {
  std::lock_guard lock(mutex_);
  free_.push_back(event);
}

absl::StatusOr<std::unique_ptr<Mark>> MarkStream(CudaDevice& device, EventPool& events,
                                                 cudaStream_t stream) {
  LH_ASSIGN_OR_RETURN(const cudaEvent_t event, events.Take());
  auto mark = std::make_unique<CudaMark>(device, events, event);
  device.Use();
  LH_RETURN_IF_ERROR(
      CudaStatus(cudaEventRecord(event, stream), absl::StrCat(device.name(), ": a mark")));
  return mark;
}

absl::Status LetStreamWait(const CudaDevice& device, cudaStream_t stream, const Mark& mark) {
  const auto* const ours = dynamic_cast<const CudaMark*>(&mark);
  LH_CHECK(ours != nullptr, "a mark of another kind of device");
  device.Use();
  return CudaStatus(cudaStreamWaitEvent(stream, ours->event(), 0),
                    absl::StrCat(device.name(), ": a wait for a mark"));
}

absl::StatusOr<std::unique_ptr<CopyStream>> MakeCudaCopyStream(CudaDevice& device,
                                                               EventPool& events) {
  LH_ASSIGN_OR_RETURN(const cudaStream_t stream, device.MakeStream());
  return std::make_unique<CudaCopyStream>(device, events, stream);
}

}  // namespace longhaul::compute
