# LONGHAUL_STATIC: programs that run where the distribution's packages are not (tools/gpu-check).
# Libraries that CMake's packages import and that lie beside an archive are linked from it. What has
# no archive goes into a folder `lib` beside that of the programs.

# longhaul_use_archives(DIRECTORY): the imported targets of it and of those below.
function(longhaul_use_archives directory)
  get_property(targets DIRECTORY ${directory} PROPERTY IMPORTED_TARGETS)
  foreach(target IN LISTS targets)
    if(NOT TARGET ${target})
      continue()  # of pkg-config's: known in its folder only
    endif()
    foreach(property IMPORTED_LOCATION IMPORTED_LOCATION_NONE IMPORTED_LOCATION_RELEASE)
      get_target_property(library ${target} ${property})
      string(REGEX REPLACE "\\.so[.0-9]*$" ".a" archive "${library}")
      if(library AND NOT library STREQUAL archive AND EXISTS ${archive})
        set_target_properties(${target} PROPERTIES ${property} ${archive})
      endif()
    endforeach()
  endforeach()
  get_property(directories DIRECTORY ${directory} PROPERTY SUBDIRECTORIES)
  foreach(subdirectory IN LISTS directories)
    longhaul_use_archives(${subdirectory})
  endforeach()
endfunction()

longhaul_use_archives(${CMAKE_SOURCE_DIR})
