"use strict";
// Upload with a token, and follow a verification.

const form = document.getElementById("upload");
if (form !== null) {
  const button = form.querySelector("button");
  const bar = form.querySelector("progress");
  const note = form.querySelector("[role=alert]");
  const showError = (text) => {
    note.textContent = text;
    note.hidden = false;
    bar.hidden = true;
    button.disabled = false;
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    note.hidden = true;
    const file = form.elements.archive.files[0];
    if (file.size > Number(form.dataset.maxBytes)) {
      showError(`The archive has ${file.size} bytes; at most ${form.dataset.maxBytes} are accepted.`);
      return;
    }
    button.disabled = true;
    bar.hidden = false;
    const request = new XMLHttpRequest();
    request.open("POST", "api/submissions");
    request.setRequestHeader("Authorization", `Bearer ${form.elements.token.value.trim()}`);
    request.setRequestHeader("Content-Type", "application/zip");
    request.responseType = "json";
    request.upload.addEventListener("progress", (event) => {
      if (event.lengthComputable) bar.value = event.loaded / event.total;
    });
    request.addEventListener("load", () => {
      if (request.status === 202) window.location.assign(request.response.status);
      else showError(request.response?.error?.message ?? `The server answered ${request.status}.`);
    });
    request.addEventListener("error", () => showError("The server cannot be reached."));
    request.send(file);
  });
}

const status = document.getElementById("status");
if (status !== null && ["queued", "verifying"].includes(status.dataset.state)) {
  const field = (name) => status.querySelector(`[data-field=${name}]`);
  const bar = status.querySelector("progress");
  const follow = async () => {
    let wait = 1000;
    try {
      const answer = await fetch(status.dataset.api);
      if (answer.ok) {
        const submission = await answer.json();
        if (!["queued", "verifying"].includes(submission.state)) {
          window.location.reload();
          return;
        }
        field("state").textContent = submission.state;
        if (submission.state === "queued") field("text").textContent = `${submission.before} before it in the queue`;
        else if (submission.total) field("text").textContent = `${submission.done} of ${submission.total} episodes replayed`;
        else field("text").textContent = "reading the files";
        bar.max = submission.total || 1;
        bar.value = submission.done;
      } else wait = 5000;
    } catch {
      wait = 5000;
    }
    window.setTimeout(follow, wait);
  };
  window.setTimeout(follow, 1000);
}
