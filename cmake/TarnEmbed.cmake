# tarn_embed(OUTVAR SYMBOL FILE…): a generated C source that holds the files; name = file name without its extension.
function(tarn_embed outvar symbol)
  set(out "${CMAKE_CURRENT_BINARY_DIR}/${symbol}.c")
  set(script "${PROJECT_SOURCE_DIR}/cmake/EmbedScript.cmake")
  list(JOIN ARGN "|" files)
  add_custom_command(OUTPUT "${out}"
    COMMAND ${CMAKE_COMMAND} "-DOUT=${out}" "-DSYMBOL=${symbol}" "-DFILES=${files}" -P "${script}"
    DEPENDS ${ARGN} "${script}" VERBATIM)
  set(${outvar} "${out}" PARENT_SCOPE)
endfunction()
