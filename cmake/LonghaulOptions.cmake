# Compiler settings that hold for every target.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1")

set(LONGHAUL_SANITIZE "" CACHE STRING "Sanitizers: empty, 'address,undefined' or 'thread'")
option(LONGHAUL_RPC "Build everything that needs gRPC (proto, daemon, cli)" ON)
option(LONGHAUL_CUDA "Build the CUDA backend (needs the CUDA toolkit; no card)" OFF)
set(LONGHAUL_CUDA_ARCHITECTURES "80-real;86-real;89-real;90" CACHE STRING
    "Compute capabilities with machine code; the last also as PTX, for cards to come")
option(LONGHAUL_FUZZ "Build the libFuzzer targets (needs clang)" OFF)
option(LONGHAUL_STATIC "Link what has archives statically; find the rest in ../lib" OFF)

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  # Its manual's settings for precompiled headers.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      ${CCACHE_PROGRAM})
endif()
find_program(MOLD_PROGRAM mold)
if(MOLD_PROGRAM)
  add_link_options(-fuse-ld=mold)
endif()

if(LONGHAUL_STATIC)
  set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL ON)  # for LonghaulStatic
  set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)
  set(CMAKE_INSTALL_RPATH "$ORIGIN/../lib")
  # With this tag it also holds for what the libraries there need themselves.
  add_link_options(-Wl,--disable-new-dtags)
endif()

add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:-Wall;-Wextra;-Werror;-Wno-unused-parameter>")
# Fused multiply-adds would make results depend on the compiler's choices (ARCHITECTURE.md,
# "Why the bits agree").
add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:-ffp-contract=off>")

if(LONGHAUL_SANITIZE)
  add_compile_options(-fsanitize=${LONGHAUL_SANITIZE} -fno-omit-frame-pointer
                      -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${LONGHAUL_SANITIZE})
  # GCC 12 reports false positives of these once sanitizers change its flow analysis.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-Wno-maybe-uninitialized -Wno-stringop-overflow)
  endif()
endif()
