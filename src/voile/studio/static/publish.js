// The certificate's button: the browser prints, or saves as PDF.
"use strict";

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-print]")) window.print();
});
