# One set of compiler options for everything of ours.
set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_C_FLAGS_RELEASE "-O2 -DNDEBUG" CACHE STRING "" FORCE)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")

# -ffp-contract=off: the semantics of f32 round every named operation once, on every machine.
add_library(tarn_options INTERFACE)
target_compile_definitions(tarn_options INTERFACE _GNU_SOURCE= TARN_VERSION="${PROJECT_VERSION}")
target_compile_options(tarn_options INTERFACE -ffp-contract=off -Wall -Wextra -Wshadow -Wconversion
  -Wno-sign-conversion -Wstrict-prototypes -Wvla $<$<BOOL:${TARN_WERROR}>:-Werror>)
target_include_directories(tarn_options INTERFACE "${PROJECT_SOURCE_DIR}")
if(TARN_DEBUG_CHECKS)
  target_compile_definitions(tarn_options INTERFACE TARN_DEBUG_CHECKS=1)
endif()

if(TARN_SANITIZE OR TARN_FUZZ)
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
endif()
if(TARN_FUZZ)
  if(NOT CMAKE_C_COMPILER_ID MATCHES Clang)
    message(FATAL_ERROR "TARN_FUZZ needs clang: use the preset fuzz")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link -Wno-pass-failed) # what is instrumented is not vectorised, asked or not
endif()
