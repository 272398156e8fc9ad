// A button copies each command; without scripts, or where a page may not copy, no button is shown.
for (const button of document.querySelectorAll(".command button")) {
  if (!navigator.clipboard) break;
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(button.previousElementSibling.textContent);
    button.textContent = "copied";
    setTimeout(() => (button.textContent = "copy"), 1500);
  });
}
