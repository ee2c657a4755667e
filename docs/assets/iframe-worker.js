// The search of these pages runs in a worker, and browsers start none from a file on disk. There, a
// hidden frame does its work. Pages that come from a server keep the worker of the browser.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      const home = new URL(url, location)
      this.onmessage = this.onerror = null
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      this.ready = new Promise((loaded, failed) => {
        document.body.appendChild(this.frame)
        const inside = this.frame.contentWindow
        const add = (source) =>
          new Promise((done, fail) => {
            const script = inside.document.createElement("script")
            script.src = new URL(source, home)
            script.onload = done
            script.onerror = () => fail(new Error(`${source} cannot be loaded`))
            inside.document.body.appendChild(script)
          })
        inside.importScripts = (...sources) =>
          sources.reduce((before, source) => before.then(() => add(source)), Promise.resolve())
        inside.postMessage = (data) => this.say(new MessageEvent("message", { data }))
        add(home).then(loaded, failed)
      })
      this.ready.catch((error) => this.say(new ErrorEvent("error", { error, message: error.message })))
    }

    say(event) {
      this[`on${event.type}`]?.(event)
      this.dispatchEvent(event)
    }

    postMessage(data) {
      this.ready.then(() => {
        const inside = this.frame.contentWindow
        inside.dispatchEvent(new inside.MessageEvent("message", { data }))
      })
    }

    terminate() {
      this.frame.remove()
    }
  }
}
