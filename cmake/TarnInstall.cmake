# Headers under include/tarn/<folder>/, libraries, the program, pkg-config and CMake package files, man page, data.
include(CMakePackageConfigHelpers)
get_property(libraries GLOBAL PROPERTY tarn_LIBRARIES)
if(NOT libraries)
  return()
endif()

set_target_properties(${libraries} PROPERTIES INSTALL_RPATH "$ORIGIN")
install(TARGETS ${libraries} EXPORT tarnTargets LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
if(TARGET tarn)
  file(RELATIVE_PATH to_lib "${CMAKE_INSTALL_FULL_BINDIR}" "${CMAKE_INSTALL_FULL_LIBDIR}")
  set_target_properties(tarn PROPERTIES INSTALL_RPATH "$ORIGIN/${to_lib}")
  install(TARGETS tarn RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
  file(RELATIVE_PATH to_lib "${CMAKE_INSTALL_FULL_LIBEXECDIR}/tarn" "${CMAKE_INSTALL_FULL_LIBDIR}")
  set_target_properties(tarn-full PROPERTIES INSTALL_RPATH "$ORIGIN/${to_lib}")
  install(TARGETS tarn-full RUNTIME DESTINATION "${CMAKE_INSTALL_LIBEXECDIR}/tarn")
  foreach(shell bash zsh)
    add_custom_command(OUTPUT "${PROJECT_BINARY_DIR}/completion.${shell}"
      COMMAND tarn-full completion ${shell} > "${PROJECT_BINARY_DIR}/completion.${shell}" DEPENDS tarn-full VERBATIM)
    list(APPEND completions "${PROJECT_BINARY_DIR}/completion.${shell}")
  endforeach()
  add_custom_target(completions ALL DEPENDS ${completions})
  install(FILES "${PROJECT_BINARY_DIR}/completion.bash" RENAME tarn
    DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions")
  install(FILES "${PROJECT_BINARY_DIR}/completion.zsh" RENAME _tarn DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/site-functions")
endif()

# A header is public when its module says so (tarn_module … HEADERS); <folder>/<folder>.h always is.
get_property(headers GLOBAL PROPERTY tarn_HEADERS)
foreach(header IN LISTS headers)
  get_filename_component(folder "${header}" DIRECTORY)
  install(FILES "${PROJECT_SOURCE_DIR}/${header}" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/tarn/${folder}")
endforeach()
configure_file("${PROJECT_SOURCE_DIR}/cmake/version.h.in" "${PROJECT_BINARY_DIR}/version.h" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/version.h" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/tarn/base")

file(GLOB pages CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/docs/*.1")
install(FILES ${pages} DESTINATION "${CMAKE_INSTALL_MANDIR}/man1")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" "${PROJECT_SOURCE_DIR}/README.md" "${PROJECT_SOURCE_DIR}/CHANGELOG.md"
  DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/docs" "${PROJECT_SOURCE_DIR}/examples" DESTINATION "${CMAKE_INSTALL_DOCDIR}"
  PATTERN "*.1" EXCLUDE)
foreach(kind rules hw)
  file(GLOB data CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${kind}/*.${kind}")
  install(FILES ${data} DESTINATION "${CMAKE_INSTALL_DATADIR}/tarn/${kind}")
endforeach()

# pkg-config: paths relative to the file itself, so that an installed tree may move.
set(pc_dir "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
file(RELATIVE_PATH pc_to_prefix "${CMAKE_INSTALL_PREFIX}/${pc_dir}" "${CMAKE_INSTALL_PREFIX}")
function(tarn_pkg_config name description requires)
  if(NOT TARGET lib_${name})
    return()
  endif()
  set(PC_NAME ${name})
  set(PC_DESCRIPTION "${description}")
  set(PC_REQUIRES "${requires}")
  configure_file("${PROJECT_SOURCE_DIR}/cmake/tarn.pc.in" "${PROJECT_BINARY_DIR}/${name}.pc" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/${name}.pc" DESTINATION "${pc_dir}")
endfunction()
tarn_pkg_config(tarn-select "selection from AND/OR graphs" "")
tarn_pkg_config(tarn "terms, e-graph, rules, extraction" "tarn-select")
tarn_pkg_config(tarn-lab "rules over any operators" "tarn")
tarn_pkg_config(tarn-sim "runs the instruction streams of accelerators" "tarn")
tarn_pkg_config(tarn-codegen "code generation through LLVM" "tarn-sim")
tarn_pkg_config(tarn-tune "measuring and the learned price" "tarn-codegen")
tarn_pkg_config(tarn-fleet "measuring on other machines" "tarn-tune")
tarn_pkg_config(tarn-rt "what compiled models link" "")

# CMake: find_package(tarn), then tarn::tarn-select, tarn::tarn, tarn::tarn-lab, tarn::tarn-sim, tarn::tarn-codegen, tarn::tarn-tune, tarn::tarn-fleet,
# tarn::tarn-rt.
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/tarn")
install(EXPORT tarnTargets NAMESPACE tarn:: DESTINATION "${package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/tarnConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
configure_file("${PROJECT_SOURCE_DIR}/cmake/tarnConfig.cmake.in" "${PROJECT_BINARY_DIR}/tarnConfig.cmake" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/tarnConfig.cmake" "${PROJECT_BINARY_DIR}/tarnConfigVersion.cmake"
  DESTINATION "${package_dir}")

# make deb: one package, which needs what its libraries and programs link (dpkg-shlibdeps).
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_CONTACT "the authors of tarn")
set(CPACK_PACKAGE_DESCRIPTION "Compiles trained models and tensor operators into C functions, PTX and instructions of accelerators,\nchoosing kernels by equality saturation. Libraries, headers and the program.")
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
set(CPACK_PACKAGE_DIRECTORY "${PROJECT_BINARY_DIR}/deb")
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${PROJECT_BINARY_DIR}/lib" "${PROJECT_BINARY_DIR}")
set(CPACK_DEBIAN_PACKAGE_DEPENDS "lld-19")
include(CPack)

# Installs into a folder of its own and builds consumers against that. Not under sanitizers, whose runtime a consumer
# would have to link.
if(TARN_TESTS AND NOT TARN_SANITIZE AND NOT TARN_FUZZ)
  add_test(NAME install COMMAND "${PROJECT_SOURCE_DIR}/tests/install/run.sh" "${PROJECT_BINARY_DIR}" "${CMAKE_C_COMPILER}")
endif()
