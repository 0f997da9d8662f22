#include "base/check.h"
#include "compute/backend/cuda/emulated/state.h"

using namespace longhaul::compute::emulated;  // NOLINT: the names of CUDA are global

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  *event = nullptr;
  const Call call;
  if (call.error() != cudaSuccess) return call.error();
  if (CheckDevice(CurrentDevice()) != cudaSuccess) return Note(CheckDevice(CurrentDevice()));
  *event = new EmulatedEvent{(flags & cudaEventDisableTiming) == 0, nullptr};
  ++MutableCounts().events;
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const Call call;
  delete event;
  return call.error();
}

// A later record makes another point: who waits for this one goes on waiting for it.
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const Call call;
  if (call.error() != cudaSuccess) return call.error();
  const std::shared_ptr<EmulatedStream>& queue = Resolve(stream);
  if (queue->capture != nullptr) {
    queue->capture->spoilt = true;
    return Note(cudaErrorStreamCaptureUnsupported);
  }
  event->point = std::make_shared<Point>(Point{queue});
  Push(*queue, {[point = event->point] {
                  point->reached = true;
                  point->microseconds = point->stream->microseconds;
                  return true;
                },
                false});
  return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  const Call call;
  if (call.error() != cudaSuccess) return call.error();
  EmulatedStream& queue = *Resolve(stream);
  if (queue.capture != nullptr) {
    queue.capture->spoilt = true;
    return Note(cudaErrorStreamCaptureIsolation);
  }
  if (event->point == nullptr) return cudaSuccess;
  Push(queue, {[point = event->point] { return Drain(*point); }, false});
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  const Call call;
  if (call.error() != cudaSuccess) return call.error();
  if (SpoilsCapture()) return Note(cudaErrorStreamCaptureUnsupported);
  return event->point == nullptr || Drain(*event->point) ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  const Call call;
  if (call.error() != cudaSuccess) return call.error();
  if (SpoilsCapture()) return Note(cudaErrorStreamCaptureUnsupported);
  LH_CHECK(event->point == nullptr || Drain(*event->point),
           "cudaEventSynchronize would never return: a stream hangs");
  return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  *milliseconds = 0;
  const Call call;
  if (call.error() != cudaSuccess) return call.error();
  for (const cudaEvent_t event : {begin, end}) {
    if (!event->has_time || event->point == nullptr) return Note(cudaErrorInvalidResourceHandle);
    if (!event->point->reached) return cudaErrorNotReady;
  }
  const int64_t elapsed = end->point->microseconds - begin->point->microseconds;
  *milliseconds = static_cast<float>(elapsed) / 1000;
  return cudaSuccess;
}
