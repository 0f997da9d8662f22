# Sums between cards. NCCL is loaded at run time: a build needs its header, not the library.
set(NCCL_SOURCES nccl_collective.cc nccl_communicator.cc)

# The same files against an NCCL between threads, for the tests. No kernel runs in them.
longhaul_library(worker_comm_nccl_emulated
  SOURCES ${NCCL_SOURCES} nccl_library_emulated.cc
          ${CMAKE_SOURCE_DIR}/compute/backend/cuda/emulated/nccl.cc
  DEPS longhaul_compute_cuda_emulated longhaul_worker_comm)
target_include_directories(longhaul_worker_comm_nccl_emulated BEFORE PRIVATE
  ${CMAKE_SOURCE_DIR}/compute/backend/cuda/emulated)

longhaul_test(worker_comm_nccl_test
  SOURCES nccl_collective_test.cc testing/collective_contract.cc
  DEPS longhaul_worker_comm_nccl_emulated longhaul_worker_comm_testing)
target_include_directories(worker_comm_nccl_test BEFORE PRIVATE
  ${CMAKE_SOURCE_DIR}/compute/backend/cuda/emulated)

# In its place where there is none, and where emulated cards are in several processes.
longhaul_library(worker_comm_nccl_absent SOURCES nccl_absent.cc DEPS longhaul_worker_comm)

if(NOT LONGHAUL_CUDA)
  return()
endif()

find_package(CUDAToolkit REQUIRED)
find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS} REQUIRED)
longhaul_library(worker_comm_nccl
  SOURCES ${NCCL_SOURCES} nccl_library.cc
  DEPS longhaul_worker_comm
  PRIVATE_DEPS longhaul_compute_cuda ${CMAKE_DL_LIBS})
target_include_directories(longhaul_worker_comm_nccl PRIVATE ${NCCL_INCLUDE_DIR})

longhaul_test(nccl_library_test
  SOURCES nccl_library.cc nccl_library_test.cc
  DEPS longhaul_base CUDA::cudart_static ${CMAKE_DL_LIBS}
  LABEL cuda)
target_include_directories(nccl_library_test PRIVATE ${NCCL_INCLUDE_DIR})
