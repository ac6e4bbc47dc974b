# What the wheel of Python carries instead of libraries that want the system's LLVM: the same objects, linked with LLVM's
# and lld's static libraries, and an ld.lld over them. Built by `make wheel` alone; needs liblld-19-dev and libzstd-dev.
if(NOT TARN_TUNE OR TARN_SANITIZE OR TARN_FUZZ)
  return()
endif()
# Polly is no static library of Debian's; see python/csrc/lld.c.
execute_process(COMMAND ${LLVM_CONFIG} --link-static --libfiles all-targets passes lto option
  OUTPUT_VARIABLE archives OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
separate_arguments(archives)
list(FILTER archives EXCLUDE REGEX "Polly")
if(NOT archives)
  return()
endif()
string(REPLACE ";" "," group "${archives}")
add_library(tarn_llvm_static INTERFACE)
target_link_options(tarn_llvm_static INTERFACE -Wl,--exclude-libs,ALL -Wl,--gc-sections)
target_link_libraries(tarn_llvm_static INTERFACE "$<LINK_GROUP:RESCAN,${group}>" stdc++ z zstd)

# wheel_NAME: lib_NAME without the shared LLVM, and with the given sources and libraries.
function(tarn_wheel_library name)
  cmake_parse_arguments(W "" "" "SOURCES;LIBS" ${ARGN})
  get_target_property(objects lib_${name} SOURCES)
  get_target_property(libs lib_${name} LINK_LIBRARIES)
  list(REMOVE_ITEM libs tarn_llvm)
  add_library(wheel_${name} SHARED EXCLUDE_FROM_ALL ${objects} ${W_SOURCES})
  set_target_properties(wheel_${name} PROPERTIES OUTPUT_NAME ${name} LINKER_LANGUAGE C VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR} LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/wheel_lib")
  target_link_libraries(wheel_${name} PRIVATE ${libs} ${W_LIBS} tarn_llvm_static)
  target_link_options(wheel_${name} PRIVATE -Wl,-z,defs -Wl,--as-needed)
endfunction()
tarn_wheel_library(tarn-codegen SOURCES python/csrc/lld.c LIBS "${llvm_libdir}/liblldELF.a" "${llvm_libdir}/liblldCommon.a")
tarn_wheel_library(tarn-tune)
add_executable(wheel_lld EXCLUDE_FROM_ALL python/csrc/lld_main.c)
set_target_properties(wheel_lld PROPERTIES OUTPUT_NAME ld.lld RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/wheel_lib")
target_link_libraries(wheel_lld PRIVATE wheel_tarn-codegen)
add_custom_target(wheel_libraries DEPENDS wheel_tarn-codegen wheel_tarn-tune wheel_lld)
