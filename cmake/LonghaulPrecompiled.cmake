# Precompiled headers: one set for libraries, one for tests, one for what may include gRPC. They
# save about a third of the compilation.

find_package(GTest REQUIRED)

# clang's fuzzers and sources with compiler flags of their own cannot share GCC's.
if(LONGHAUL_FUZZ)
  set(LONGHAUL_PRECOMPILE OFF)
else()
  option(LONGHAUL_PRECOMPILE "Parse common headers once" ON)
endif()

if(LONGHAUL_PRECOMPILE)
  # It must be the same for all that share a header, and some packages ask for it.
  add_compile_options(-pthread)
  # With precompiled strings GCC 12 believes that std::string(64, 'a') overruns its short form.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread)
  endif()
endif()

# Sources still name what they use: with -DLONGHAUL_PRECOMPILE=OFF everything builds the same.
set(LONGHAUL_COMMON_HEADERS
    <algorithm> <array> <condition_variable> <cstdint> <functional> <limits> <map> <memory> <mutex>
    <optional> <set> <string> <thread> <utility> <variant> <vector>
    <absl/functional/function_ref.h> <absl/status/status.h> <absl/status/statusor.h>
    <absl/strings/str_cat.h> <absl/strings/str_join.h> <absl/strings/string_view.h>
    <absl/time/time.h> <absl/types/span.h>)

# longhaul_precompile(OWNER HEADERS...)
function(longhaul_precompile owner)
  file(WRITE ${CMAKE_BINARY_DIR}/precompiled/${owner}.cc "")
  add_library(longhaul_${owner} STATIC ${CMAKE_BINARY_DIR}/precompiled/${owner}.cc)
  target_precompile_headers(longhaul_${owner} PRIVATE ${ARGN} ${LONGHAUL_COMMON_HEADERS})
endfunction()

if(LONGHAUL_PRECOMPILE)
  longhaul_precompile(precompiled)
  longhaul_precompile(precompiled_test <gmock/gmock.h> <gtest/gtest.h>)
  if(LONGHAUL_RPC)
    longhaul_precompile(precompiled_rpc <grpcpp/grpcpp.h>)
  endif()
  # Tests are executables, which CMake compiles with -fPIE; a precompiled header must agree.
  set_target_properties(longhaul_precompiled_test PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(longhaul_precompiled_test PRIVATE -fPIE)
  target_link_libraries(longhaul_precompiled_test PRIVATE GTest::gmock)
endif()

# longhaul_use_precompiled(TARGET OWNER)
function(longhaul_use_precompiled target owner)
  if(LONGHAUL_PRECOMPILE)
    target_precompile_headers(${target} REUSE_FROM longhaul_${owner})
  endif()
endfunction()
