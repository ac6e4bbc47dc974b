# What we build on; packages.txt has the Debian packages.
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)

pkg_check_modules(yajl REQUIRED IMPORTED_TARGET yajl)
pkg_check_modules(libedit REQUIRED IMPORTED_TARGET libedit)
pkg_check_modules(protobuf_c REQUIRED IMPORTED_TARGET libprotobuf-c)
if(TARN_TUNE)
  pkg_check_modules(hwloc REQUIRED IMPORTED_TARGET hwloc)
  pkg_check_modules(sqlite3 REQUIRED IMPORTED_TARGET sqlite3)
  find_library(TARN_XGBOOST xgboost REQUIRED)
endif()
if(TARN_TESTS)
  pkg_check_modules(check REQUIRED IMPORTED_TARGET check)
endif()

# LLVM 19 through its C interface and one shared library.
if(TARN_CODEGEN)
  find_program(LLVM_CONFIG NAMES llvm-config-19 llvm-config REQUIRED)
  execute_process(COMMAND ${LLVM_CONFIG} --version OUTPUT_VARIABLE llvm_version OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT llvm_version MATCHES "^19\\.")
    message(FATAL_ERROR "LLVM 19 is needed; ${LLVM_CONFIG} is of version ${llvm_version}")
  endif()
  execute_process(COMMAND ${LLVM_CONFIG} --includedir OUTPUT_VARIABLE llvm_include OUTPUT_STRIP_TRAILING_WHITESPACE)
  execute_process(COMMAND ${LLVM_CONFIG} --libdir OUTPUT_VARIABLE llvm_libdir OUTPUT_STRIP_TRAILING_WHITESPACE)
  find_library(TARN_LLVM_LIBRARY NAMES LLVM-19 LLVM HINTS "${llvm_libdir}" REQUIRED NO_DEFAULT_PATH)
  add_library(tarn_llvm INTERFACE)
  target_include_directories(tarn_llvm SYSTEM INTERFACE "${llvm_include}")
  target_link_libraries(tarn_llvm INTERFACE "${TARN_LLVM_LIBRARY}")
endif()

# The ONNX schema as Debian's libonnx-dev installs it, compiled by protoc-c. Include it as "onnx.pb-c.h".
find_path(TARN_ONNX_PROTO_DIR onnx.proto PATHS /usr/include/onnx PATH_SUFFIXES onnx REQUIRED)
find_program(PROTOC_C NAMES protoc-c REQUIRED)
set(onnx_dir "${CMAKE_BINARY_DIR}/generated/onnx")
file(MAKE_DIRECTORY "${onnx_dir}")
add_custom_command(OUTPUT "${onnx_dir}/onnx.pb-c.c" "${onnx_dir}/onnx.pb-c.h"
  COMMAND ${PROTOC_C} "--c_out=${onnx_dir}" "--proto_path=${TARN_ONNX_PROTO_DIR}" onnx.proto
  DEPENDS "${TARN_ONNX_PROTO_DIR}/onnx.proto" VERBATIM)
add_library(onnx_proto STATIC EXCLUDE_FROM_ALL "${onnx_dir}/onnx.pb-c.c" "${onnx_dir}/onnx.pb-c.h")
target_include_directories(onnx_proto SYSTEM PUBLIC "${onnx_dir}")
target_link_libraries(onnx_proto PUBLIC PkgConfig::protobuf_c)
target_compile_options(onnx_proto PRIVATE -w)
