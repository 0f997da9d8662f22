#include <algorithm>
#include <map>
#include <utility>

#include "base/check.h"
#include "compute/backend/cuda/emulated/state.h"

// Streams run as late as a caller can bear: a result that is used without a wait for it is not
// there.
namespace longhaul::compute::emulated {
namespace {

// Never destroyed: what hangs is there when the process ends.
std::vector<std::shared_ptr<EmulatedStream>>& Streams() {
  static auto& streams = *new std::vector<std::shared_ptr<EmulatedStream>>;
  return streams;
}

thread_local EmulatedStream* captured = nullptr;

const std::shared_ptr<EmulatedStream>& Create() {
  Streams().push_back(std::make_shared<EmulatedStream>());
  Streams().back()->device = CurrentDevice();
  return Streams().back();
}

bool Hangs(const EmulatedStream& stream) {
  const std::vector<const void*>& hung = TheMachine().hung;
  return TheMachine().hangs || std::find(hung.begin(), hung.end(), &stream) != hung.end();
}

bool RunFirst(EmulatedStream& stream) {
  if (stream.operations.empty() || Hangs(stream)) return false;
  if (!stream.operations.front().run()) return false;
  if (stream.operations.front().takes_time) ++stream.microseconds;
  stream.operations.pop_front();
  return true;
}

}  // namespace

void Push(EmulatedStream& stream, Operation operation) {
  if (stream.capture != nullptr) {
    stream.capture->operations.push_back(std::move(operation));
  } else {
    stream.operations.push_back(std::move(operation));
  }
}

const std::shared_ptr<EmulatedStream>& Resolve(cudaStream_t stream) {
  if (stream == nullptr) {
    static auto& defaults = *new std::map<int, std::shared_ptr<EmulatedStream>>;
    std::shared_ptr<EmulatedStream>& ours = defaults[CurrentDevice()];
    if (ours == nullptr) ours = Create();
    return ours;
  }
  const auto held = std::find_if(Streams().begin(), Streams().end(),
                                 [&](const auto& each) { return each.get() == stream; });
  LH_CHECK(held != Streams().end(), "a stream that was destroyed");
  return *held;
}

bool Drain(EmulatedStream& stream) {
  while (!stream.operations.empty()) {
    if (!RunFirst(stream)) return false;
  }
  return true;
}

bool Drain(Point& point) {
  while (!point.reached) {
    if (!RunFirst(*point.stream)) return false;
  }
  return true;
}

void DropEverything() {
  for (const auto& stream : Streams()) stream->operations.clear();
}

void DrainDevice(const char* call) {
  for (const auto& stream : Streams()) {
    LH_CHECK(Drain(*stream), call, " would never return: a stream hangs");
  }
  std::erase_if(Streams(), [](const auto& stream) { return stream->destroyed; });
}

bool SpoilsCapture() {
  if (captured == nullptr) return false;
  captured->capture->spoilt = true;
  return true;
}

void Queue(cudaStream_t stream, std::function<void()> work) {
  const Call call;
  Push(*Resolve(stream), {[work = std::move(work)] {
                            work();
                            return true;
                          },
                          true});
}

void Launch(cudaStream_t stream, dim3 grid, dim3 block, std::function<void()> thread) {
  const size_t threads = size_t{block.x} * block.y * block.z;
  LH_CHECK(threads >= 1 && threads <= 1024 && size_t{grid.x} * grid.y * grid.z >= 1 &&
               grid.y <= 65535 && grid.z <= 65535,
           "a launch of a shape that cards refuse");
  const Call call;
  EmulatedStream& queue = *Resolve(stream);
  if (queue.device != CurrentDevice()) {
    Note(cudaErrorInvalidResourceHandle);
    return;
  }
  ++MutableCounts().launches;
  Push(queue, {[grid, block, thread = std::move(thread)] {
                 RunKernel(grid, block, thread);
                 return true;
               },
               true});
}

}  // namespace longhaul::compute::emulated

using namespace longhaul::compute::emulated;  // NOLINT: the names of CUDA are global

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = nullptr;
  const Call call;
  if (call.error() != cudaSuccess) return call.error();
  if (CheckDevice(CurrentDevice()) != cudaSuccess) return Note(CheckDevice(CurrentDevice()));
  *stream = Create().get();
  ++MutableCounts().streams;
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const Call call;
  Resolve(stream)->destroyed = true;
  std::erase_if(Streams(),
                [](const auto& held) { return held->destroyed && held->operations.empty(); });
  return call.error();
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  const Call call;
  if (call.error() != cudaSuccess) return call.error();
  if (SpoilsCapture()) return Note(cudaErrorStreamCaptureUnsupported);
  LH_CHECK(Drain(*Resolve(stream)), "cudaStreamSynchronize would never return: a stream hangs");
  return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  const Call call;
  if (call.error() != cudaSuccess) return call.error();
  if (SpoilsCapture()) return Note(cudaErrorStreamCaptureUnsupported);
  return Drain(*Resolve(stream)) ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaDeviceSynchronize() {
  const Call call;
  if (call.error() != cudaSuccess) return call.error();
  if (SpoilsCapture()) return Note(cudaErrorStreamCaptureUnsupported);
  DrainDevice("cudaDeviceSynchronize");
  return cudaSuccess;
}

// Graphs: what a stream was told, to be told again. -----------------------------------------------

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  const Call call;
  if (call.error() != cudaSuccess) return call.error();
  if (stream == nullptr || captured != nullptr) return Note(cudaErrorStreamCaptureUnsupported);
  stream->capture = std::make_unique<EmulatedGraph>();
  captured = stream;
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  *status = cudaStreamCaptureStatusNone;
  const Call call;
  if (call.error() != cudaSuccess) return call.error();
  const auto& capture = Resolve(stream)->capture;
  if (capture == nullptr) return cudaSuccess;
  *status = capture->spoilt ? cudaStreamCaptureStatusInvalidated : cudaStreamCaptureStatusActive;
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = nullptr;
  const Call call;
  if (call.error() != cudaSuccess) return call.error();
  if (captured != stream || stream->capture == nullptr) return Note(cudaErrorIllegalState);
  captured = nullptr;
  const std::unique_ptr<EmulatedGraph> capture = std::move(stream->capture);
  if (capture->spoilt) return Note(cudaErrorStreamCaptureInvalidated);
  *graph = new EmulatedGraph(*capture);
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long) {
  *executable = nullptr;
  const Call call;
  if (call.error() != cudaSuccess) return call.error();
  *executable = new EmulatedGraphExec{*graph};
  ++MutableCounts().graphs;
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  const Call call;
  if (call.error() != cudaSuccess) return call.error();
  for (const Operation& operation : executable->operations) Push(*Resolve(stream), operation);
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  const Call call;
  delete graph;
  return call.error();
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  const Call call;
  delete executable;
  return call.error();
}
