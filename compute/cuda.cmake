# In the CUDA backend's place where there is none.
longhaul_library(compute_cuda_absent
  SOURCES backend/cuda/cuda_absent.cc
  DEPS longhaul_compute)

# The CUDA backend. Its kernels' files are compiled twice: by nvcc for cards, and as C++ against
# backend/cuda/emulated for the tests, which run them on any machine.
set(CUDA_HOST_SOURCES
    backend/cuda/architectures.cc
    backend/cuda/cuda_backend.cc
    backend/cuda/cuda_buffers.cc
    backend/cuda/cuda_device.cc
    backend/cuda/cuda_recording.cc
    backend/cuda/cuda_status.cc
    backend/cuda/fused_attention.cc
    backend/cuda/lt_product.cc
    backend/cuda/cuda_streams.cc
    backend/cuda/cuda_timer.cc
    backend/cuda/device_facts.cc
    backend/cuda/launch_window.cc
    backend/cuda/matrix_product.cc
    backend/cuda/pinned_ring.cc)
set(CUDA_KERNEL_SOURCES
    codec/bf16_cuda.cu
    codec/int8_cuda.cu
    codec/none_cuda.cu
    ops/add_cuda.cu
    ops/add_norm_cuda.cu
    ops/causal_attention_cuda.cu
    ops/dropout_cuda.cu
    ops/embedding_cuda.cu
    ops/gelu_cuda.cu
    ops/layer_norm_cuda.cu
    ops/linear_cuda.cu
    ops/linear_gelu_cuda.cu
    ops/rms_norm_cuda.cu
    ops/rotary_cuda.cu
    ops/softmax_cross_entropy_cuda.cu
    ops/swiglu_cuda.cu
    optim/adamw_cuda.cu
    optim/round_cuda.cu
    optim/sum_of_squares_cuda.cu)

# A C++ file for each .cu file: a file has one language in a folder.
set(EMULATED_SOURCES
    backend/cuda/emulated/cublas.cc
    backend/cuda/emulated/cublas_lt.cc
    backend/cuda/emulated/environment.cc
    backend/cuda/emulated/events.cc
    backend/cuda/emulated/fibers.cc
    backend/cuda/emulated/memory.cc
    backend/cuda/emulated/runtime.cc
    backend/cuda/fused_attention_absent.cc
    backend/cuda/emulated/streams.cc)
foreach(source ${CUDA_KERNEL_SOURCES})
  set(wrapper ${CMAKE_CURRENT_BINARY_DIR}/${source}.emulated.cc)
  file(CONFIGURE OUTPUT ${wrapper} CONTENT "#include \"compute/${source}\"\n")
  list(APPEND EMULATED_SOURCES ${wrapper})
endforeach()
find_package(Boost REQUIRED COMPONENTS context)
longhaul_library(compute_cuda_emulated
  SOURCES ${CUDA_HOST_SOURCES} ${EMULATED_SOURCES}
  DEPS longhaul_compute
  PRIVATE_DEPS Boost::context)
target_include_directories(longhaul_compute_cuda_emulated BEFORE PRIVATE backend/cuda/emulated)
target_compile_definitions(longhaul_compute_cuda_emulated PRIVATE
  LONGHAUL_CUDA_BUILT_FOR="80-real,90")
# To GCC the unnamed namespaces of what the wrappers include look shared.
target_compile_options(longhaul_compute_cuda_emulated PRIVATE -Wno-subobject-linkage)

if(NOT LONGHAUL_SANITIZE STREQUAL "thread")  # as testing/op_testing.h says
  longhaul_test(cuda_emulated_test
    SOURCES backend/cuda/architectures_test.cc
            backend/cuda/cuda_backend_test.cc
            ops/fused_attention_test.cc
            backend/cuda/lt_product_test.cc
            backend/cuda/cuda_streams_test.cc
            backend/cuda/device_facts_test.cc
            backend/cuda/emulated/emulation_test.cc
            stage/cuda_stage_test.cc
    DEPS longhaul_compute longhaul_compute_testing)
  target_include_directories(cuda_emulated_test BEFORE PRIVATE backend/cuda/emulated)
endif()

if(NOT LONGHAUL_CUDA)
  return()
endif()

find_package(CUDAToolkit REQUIRED)
# cuDNN itself is opened at run time. `./dev build --cuda` fetches the frontend, which is headers.
find_path(CUDNN_INCLUDE_DIR cudnn.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
find_path(CUDNN_FRONTEND_INCLUDE_DIR cudnn_frontend.h
          HINTS ${CMAKE_BINARY_DIR}/cudnn-frontend/include)
if(CUDNN_INCLUDE_DIR AND CUDNN_FRONTEND_INCLUDE_DIR)
  set(FUSED_ATTENTION_SOURCE backend/cuda/cudnn_attention.cc)
  set_source_files_properties(${FUSED_ATTENTION_SOURCE} PROPERTIES
    COMPILE_OPTIONS "-isystem;${CUDNN_FRONTEND_INCLUDE_DIR};-isystem;${CUDNN_INCLUDE_DIR}"
    COMPILE_DEFINITIONS "NV_CUDNN_FRONTEND_USE_DYNAMIC_LOADING;CUDNN_FRONTEND_SKIP_JSON_LIB")
else()
  set(FUSED_ATTENTION_SOURCE backend/cuda/fused_attention_absent.cc)
  message(WARNING "attention by cuDNN is left out: there is no cudnn.h (CUDNN_INCLUDE_DIR) or no "
                  "cudnn_frontend.h (CUDNN_FRONTEND_INCLUDE_DIR; it comes with PyPI's "
                  "nvidia-cudnn-frontend)")
endif()
# No precompiled headers: they are of another language.
add_library(longhaul_compute_cuda STATIC
  ${CUDA_HOST_SOURCES} ${CUDA_KERNEL_SOURCES} ${FUSED_ATTENTION_SOURCE})
# CMake 3.25 does not know how nvcc 13 is told the standard.
set_target_properties(longhaul_compute_cuda PROPERTIES CUDA_STANDARD_REQUIRED OFF)
target_compile_options(longhaul_compute_cuda PRIVATE
  "$<$<COMPILE_LANGUAGE:CUDA>:-std=c++20;--expt-relaxed-constexpr;-Xcompiler=-Wall,-Wextra>")
string(REPLACE ";" "," built_for "${LONGHAUL_CUDA_ARCHITECTURES}")
target_compile_definitions(longhaul_compute_cuda PRIVATE LONGHAUL_CUDA_BUILT_FOR="${built_for}")
target_link_libraries(longhaul_compute_cuda
  PUBLIC longhaul_compute CUDA::cudart_static CUDA::cublas CUDA::cublasLt ${CMAKE_DL_LIBS})

# The same tests of the operators and streams, on a card. Without one they are skipped, and the
# number is said.
longhaul_library(compute_cuda_testing
  SOURCES testing/cuda_main.cc testing/golden.cc testing/op_testing.cc
  DEPS longhaul_compute_cuda GTest::gtest
  PRIVATE_DEPS nlohmann_json::nlohmann_json)
add_executable(compute_cuda_test backend/streams_test.cc ${OPERATOR_TESTS})
target_link_libraries(compute_cuda_test PRIVATE longhaul_compute_cuda_testing GTest::gmock)
longhaul_use_precompiled(compute_cuda_test precompiled_test)
add_test(NAME compute_cuda_test COMMAND compute_cuda_test WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
set_tests_properties(compute_cuda_test PROPERTIES LABELS cuda TIMEOUT 120 SKIP_RETURN_CODE 77)
