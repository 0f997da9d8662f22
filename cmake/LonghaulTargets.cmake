# Helpers that keep each folder's CMakeLists.txt a short list of facts.

# longhaul_library(NAME SOURCES a.cc ... DEPS x ... PRIVATE_DEPS y ... [RPC])
# A static library `longhaul_NAME`. DEPS are those whose headers appear in this library's headers.
# RPC: its sources include gRPC.
function(longhaul_library name)
  cmake_parse_arguments(ARG "RPC" "" "SOURCES;DEPS;PRIVATE_DEPS" ${ARGN})
  add_library(longhaul_${name} STATIC ${ARG_SOURCES})
  target_include_directories(longhaul_${name} PUBLIC ${CMAKE_SOURCE_DIR})
  target_link_libraries(longhaul_${name} PUBLIC ${ARG_DEPS} PRIVATE ${ARG_PRIVATE_DEPS})
  if(ARG_RPC)
    longhaul_use_precompiled(longhaul_${name} precompiled_rpc)
  else()
    longhaul_use_precompiled(longhaul_${name} precompiled)
  endif()
endfunction()

find_package(GTest REQUIRED)
include(GoogleTest)

# longhaul_test(NAME SOURCES a_test.cc ... DEPS x ... [LABEL unit])
# One GoogleTest binary, run as one ctest entry; labels: unit, sim, golden, exact, integration.
function(longhaul_test name)
  cmake_parse_arguments(ARG "" "LABEL;TIMEOUT" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gmock GTest::gtest_main)
  longhaul_use_precompiled(${name} precompiled_test)
  add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  if(NOT ARG_LABEL)
    set(ARG_LABEL unit)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  # PROCESSORS is in halves of a core: `./dev test` gives ctest two for each.
  set_tests_properties(${name} PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT} PROCESSORS 2)
  if(LONGHAUL_SANITIZE MATCHES "address")
    set_tests_properties(${name} PROPERTIES ENVIRONMENT
      "LSAN_OPTIONS=suppressions=${CMAKE_SOURCE_DIR}/tests/lsan_suppressions.txt")
  endif()
endfunction()
