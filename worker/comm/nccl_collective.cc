#include "worker/comm/nccl_collective.h"

#include <cuda_runtime.h>

#include <cstring>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "compute/backend/cuda/cuda_backend.h"
#include "compute/backend/cuda/cuda_status.h"
#include "worker/comm/nccl_communicator.h"
#include "worker/comm/nccl_library.h"

namespace longhaul::worker {
namespace {

using compute::CudaStatus;

// Doubles that are summed at once: losses and norms, of which there are few.
constexpr size_t kDoublesMax = 4096;

// Of a host's name in a card's: it is a UUID.
constexpr size_t kHostBytesMax = 64;

// Of doubles on their way through the device.
struct Doubles {
  void* device = nullptr;
  void* host = nullptr;  // pinned

  absl::Status Allocate(const std::string& name) {
    constexpr size_t kBytes = kDoublesMax * sizeof(double);
    LH_RETURN_IF_ERROR(CudaStatus(cudaMalloc(&device, kBytes), name));
    return CudaStatus(cudaMallocHost(&host, kBytes), name);
  }
  // Waits for the device.
  void Free() {
    if (device != nullptr) cudaFree(device);
    if (host != nullptr) cudaFreeHost(host);
  }
};

class NcclCollective final : public Collective {
 public:
  NcclCollective(const NcclLibrary& nccl, std::unique_ptr<NcclCommunicator> communicator,
                 const Doubles& doubles)
      : nccl_(nccl), communicator_(std::move(communicator)), doubles_(doubles) {}
  // On a device that may hang the few bytes are left, until the process ends.
  ~NcclCollective() override {
    const bool ended_well = communicator_->End();
    if (ended_well) doubles_.Free();
  }

  int rank() const override { return communicator_->rank(); }
  int size() const override { return communicator_->size(); }
  bool on_device() const override { return true; }

  absl::Status AllReduceSum(absl::Span<float> values, absl::Time deadline) override {
    return Sum(values.data(), values.size(), ncclFloat32, deadline);
  }
  absl::Status Broadcast(absl::Span<float> values, absl::Time deadline) override {
    return FromFirst(values.data(), values.size(), ncclFloat32, deadline);
  }

  absl::Status SumDoubles(absl::Span<double> values, absl::Time deadline) override {
    return InPieces(values, deadline, [&](void* data, size_t count) {
      return Sum(data, count, ncclFloat64, deadline);
    });
  }
  absl::Status BroadcastDoubles(absl::Span<double> values, absl::Time deadline) override {
    return InPieces(values, deadline, [&](void* data, size_t count) {
      return FromFirst(data, count, ncclFloat64, deadline);
    });
  }

  void Cancel(const absl::Status& reason) override { communicator_->Cancel(reason); }

 private:
  absl::Status Sum(void* data, size_t count, ncclDataType_t type, absl::Time deadline) {
    return communicator_->Run(
        absl::StrCat("the sum of ", count, " values"),
        [&](ncclComm_t comm, cudaStream_t stream) {
          return nccl_.all_reduce(data, data, count, type, ncclSum, comm, stream);
        },
        deadline);
  }

  absl::Status FromFirst(void* data, size_t count, ncclDataType_t type, absl::Time deadline) {
    return communicator_->Run(
        absl::StrCat("the broadcast of ", count, " values"),
        [&](ncclComm_t comm, cudaStream_t stream) {
          return nccl_.broadcast(data, data, count, type, 0, comm, stream);
        },
        deadline);
  }

  // Takes host memory through the device's: `operation` gets a piece there.
  absl::Status InPieces(absl::Span<double> values, absl::Time deadline,
                        absl::FunctionRef<absl::Status(void* data, size_t count)> operation) {
    for (size_t begin = 0; begin < values.size(); begin += kDoublesMax) {
      const absl::Span<double> piece = values.subspan(begin, kDoublesMax);
      const size_t bytes = piece.size() * sizeof(double);
      std::memcpy(doubles_.host, piece.data(), bytes);
      LH_RETURN_IF_ERROR(communicator_->Copy(doubles_.device, doubles_.host, bytes,
                                             cudaMemcpyHostToDevice, deadline));
      LH_RETURN_IF_ERROR(operation(doubles_.device, piece.size()));
      LH_RETURN_IF_ERROR(communicator_->Copy(doubles_.host, doubles_.device, bytes,
                                             cudaMemcpyDeviceToHost, deadline));
      std::memcpy(piece.data(), doubles_.host, bytes);
    }
    return absl::OkStatus();
  }

  const NcclLibrary nccl_;
  const std::unique_ptr<NcclCommunicator> communicator_;
  Doubles doubles_;
};

// Two containers on one host see the same name, two hosts never.
absl::StatusOr<std::string> CardName(int device) {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  if (boot.empty()) {
    return absl::FailedPreconditionError("/proc/sys/kernel/random/boot_id does not name the host");
  }
  char bus[32] = {};
  LH_RETURN_IF_ERROR(CudaStatus(cudaDeviceGetPCIBusId(bus, sizeof(bus), device),
                                absl::StrCat("CUDA device ", device)));
  return absl::StrCat(bus, " of host ", boot.substr(0, kHostBytesMax));
}

class NcclRendezvous final : public DeviceRendezvous {
 public:
  NcclRendezvous(const NcclLibrary& nccl, const NcclPlace& place, absl::Duration connect_max,
                 Clock& clock)
      : nccl_(nccl),
        place_(place),
        connect_max_(connect_max),
        clock_(clock),
        communicator_(std::make_unique<NcclCommunicator>(nccl, place, clock)),
        cancelled_(communicator_.get()) {}

  // Makes the offer.
  absl::Status Open() {
    offer_.library = absl::StrCat("nccl ", NcclVersionText(nccl_.version));
    LH_ASSIGN_OR_RETURN(offer_.card, CardName(place_.device));
    if (place_.rank != 0) return absl::OkStatus();
    ncclUniqueId id;
    if (const ncclResult_t result = nccl_.get_unique_id(&id); result != ncclSuccess) {
      const char* const last = nccl_.get_last_error(nullptr);
      return absl::UnavailableError(
          absl::StrCat(place_.names[0], " cannot listen for NCCL: ", nccl_.get_error_string(result),
                       " (", last == nullptr ? "" : last, ")"));
    }
    offer_.id.assign(id.internal, sizeof(id.internal));
    return absl::OkStatus();
  }

  const DeviceOffer& offer() const override { return offer_; }

  absl::StatusOr<std::unique_ptr<Collective>> Connect(const std::string& id) override {
    LH_CHECK(communicator_ != nullptr, "Connect is called once");
    ncclUniqueId unique;
    if (id.size() != sizeof(unique.internal)) {
      return absl::InvalidArgumentError(absl::StrCat(place_.names[0], " published an id of ",
                                                     id.size(), " bytes for NCCL instead of ",
                                                     sizeof(unique.internal)));
    }
    std::memcpy(unique.internal, id.data(), id.size());
    const absl::Time deadline = clock_.Now() + connect_max_;
    LH_RETURN_IF_ERROR(communicator_->Meet(unique, deadline));
    Doubles doubles;
    if (absl::Status status = doubles.Allocate(place_.names[place_.rank]); !status.ok()) {
      doubles.Free();
      return status;
    }
    if (const absl::Status status = SumOnce(doubles, deadline); !status.ok()) {
      if (communicator_->End()) doubles.Free();
      return status;
    }
    return std::make_unique<NcclCollective>(nccl_, std::move(communicator_), doubles);
  }

  void Cancel(const absl::Status& reason) override { cancelled_->Cancel(reason); }

 private:
  // NCCL connects the cards and takes most of its memory at the first sum: now, not in training.
  absl::Status SumOnce(const Doubles& doubles, absl::Time deadline) {
    *static_cast<double*>(doubles.host) = 0;
    absl::Status status = communicator_->Copy(doubles.device, doubles.host, sizeof(double),
                                              cudaMemcpyHostToDevice, deadline);
    if (status.ok()) {
      status = communicator_->Run(
          "the first sum",
          [&](ncclComm_t comm, cudaStream_t stream) {
            return nccl_.all_reduce(doubles.device, doubles.device, 1, ncclFloat64, ncclSum, comm,
                                    stream);
          },
          deadline);
    }
    if (status.ok()) return status;
    return absl::Status(
        status.code(),
        absl::StrCat(
            status.message(),
            "; NCCL needs memory of the card beside the stage, /dev/shm, and ports between "
            "the hosts; with `nccl: false` in their configurations the workers sum over "
            "the hosts"));
  }

  const NcclLibrary nccl_;
  const NcclPlace place_;
  const absl::Duration connect_max_;
  Clock& clock_;
  DeviceOffer offer_;
  std::unique_ptr<NcclCommunicator> communicator_;  // until Connect
  NcclCommunicator* const cancelled_;
};

absl::StatusOr<std::unique_ptr<DeviceRendezvous>> Open(const DeviceRendezvousOptions& options,
                                                       compute::Backend& backend, Clock& clock) {
  if (backend.kind() != compute::DeviceKind::kCuda) {
    return absl::FailedPreconditionError("NCCL sums on CUDA devices only");
  }
  const int device = static_cast<compute::CudaBackend&>(backend).device();
  LH_ASSIGN_OR_RETURN(const NcclLibrary nccl, LoadNccl());
  auto rendezvous = std::make_unique<NcclRendezvous>(
      nccl, NcclPlace{device, options.rank, options.names}, options.connect_max, clock);
  LH_RETURN_IF_ERROR(rendezvous->Open());
  return rendezvous;
}

}  // namespace

DeviceRendezvousFactory NcclRendezvousFactory() { return &Open; }

}  // namespace longhaul::worker
