// SPDX-License-Identifier: BSD-3-Clause
import java.io.ByteArrayInputStream;
import java.io.File;
import java.io.StringWriter;
import java.net.URLDecoder;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import javax.imageio.ImageIO;
import javafx.application.Application;
import javafx.application.Platform;
import javafx.embed.swing.SwingFXUtils;
import javafx.scene.Parent;
import javafx.scene.image.ImageView;
import javafx.scene.image.WritableImage;
import javafx.stage.Stage;
import org.csstudio.display.actions.OpenDisplayAction;
import org.csstudio.display.builder.model.ArrayWidgetProperty;
import org.csstudio.display.builder.model.DisplayModel;
import org.csstudio.display.builder.model.ModelPlugin;
import org.csstudio.display.builder.model.StructuredWidgetProperty;
import org.csstudio.display.builder.model.Widget;
import org.csstudio.display.builder.model.WidgetProperty;
import org.csstudio.display.builder.model.persist.ModelLoader;
import org.csstudio.display.builder.model.persist.WidgetClassesService;
import org.csstudio.display.builder.model.properties.ActionsWidgetProperty;
import org.csstudio.display.builder.model.spi.ActionInfo;
import org.csstudio.display.builder.model.widgets.ActionButtonWidget;
import org.csstudio.display.builder.model.widgets.EmbeddedDisplayWidget;
import org.csstudio.display.builder.model.widgets.TableWidget;
import org.csstudio.display.builder.representation.javafx.JFXStageRepresentation;
import org.csstudio.display.builder.runtime.ActionUtil;
import org.csstudio.display.builder.runtime.RuntimeUtil;
import org.epics.util.array.ListNumber;
import org.epics.vtype.VTable;
import org.epics.vtype.VType;
import org.phoebus.framework.macros.Macros;
import org.phoebus.framework.preferences.PropertyPreferenceLoader;
import org.phoebus.pv.PV;
import org.phoebus.pv.PVPool;
import org.w3c.dom.Element;

/** Draws displays with the Display Builder of Phoebus itself, and says what it complains about (tools/phoebus.sh).
 *
 *  Arguments: folder for the pictures, seconds that a display is shown, displays as FILE?MACRO=VALUE&... For each display:
 *  a picture; properties that no widget has (Phoebus skips them without a word); PVs that are not connected; what Phoebus
 *  logs as a warning. Then each button that opens a display is pressed and the first row of each table is selected, and
 *  what opens is looked at in the same way. The exit code is 1 if anything was found. */
public class Render extends Application
{
    /** A display as it is shown. */
    private record Shown(DisplayModel model, Toolkit toolkit) {}

    private static final ConcurrentLinkedQueue<String> logged = new ConcurrentLinkedQueue<>();
    private static final ConcurrentLinkedQueue<Shown> opened = new ConcurrentLinkedQueue<>();
    private static final Set<String> problems = new LinkedHashSet<>();
    private static File folder;
    private static double seconds;

    /** Keeps what a button or a script opens, instead of a tab. */
    private static class Toolkit extends JFXStageRepresentation
    {
        private final Stage stage;

        Toolkit(final Stage stage)
        {
            super(stage);
            this.stage = stage;
        }

        @Override
        public org.csstudio.display.builder.representation.ToolkitRepresentation<Parent, javafx.scene.Node>
            openPanel(final DisplayModel model, final String name, final java.util.function.Consumer<DisplayModel> close)
        {
            final Shown shown = represent(model);
            opened.add(shown);
            return shown.toolkit;
        }
    }

    /** What is not about displays: a busy machine, windows that close while values come, how it was started. */
    private static final String NOISE = "(?s).*(Unsupported JavaFX configuration|" +
        "timeout representing new content|Skipping image update|User destroyed channel|Representation update failed|" +
        "Skipping display shutdown|Adjusting the range|Received unexpected monitor).*";

    /** Everything else that Phoebus logs as a warning or worse. */
    private static class Warnings extends Handler
    {
        @Override
        public void publish(final LogRecord record)
        {
            if (record.getLevel().intValue() < Level.WARNING.intValue())
                return;
            final Throwable why = record.getThrown();
            final String text = new java.util.logging.SimpleFormatter().formatMessage(record);
            if (! text.matches(NOISE))
                logged.add(record.getLoggerName() + ": " + text + (why == null ? "" : ": " + why));
        }

        @Override
        public void flush() {}

        @Override
        public void close() {}
    }

    public static void main(final String[] args) throws Exception
    {
        for (Handler handler : Logger.getLogger("").getHandlers())
            Logger.getLogger("").removeHandler(handler);
        Logger.getLogger("").addHandler(new Warnings());
        // Trends show what comes from now on: there is no archive to ask.
        final String trends = "org.csstudio.trends.databrowser3/";
        PropertyPreferenceLoader.load(new ByteArrayInputStream((trends + "urls=\n" + trends + "archives=\n").getBytes()));
        ModelPlugin.reloadConfigurationFiles(); // named fonts and colours, classes of widgets
        launch(Render.class, args); // by its name it is not found: Phoebus changes the class loader
    }

    @Override
    public void start(final Stage unused)
    {
        Platform.setImplicitExit(false);
        final List<String> args = getParameters().getRaw();
        folder = new File(args.get(0));
        seconds = Double.parseDouble(args.get(1));
        new Thread(() ->
        {
            int code = 1;
            try
            {
                for (String display : args.subList(2, args.size()))
                    look(display);
                problems.forEach(System.out::println);
                code = problems.isEmpty() ? 0 : 1;
            }
            catch (Throwable ex)
            {
                ex.printStackTrace();
            }
            System.out.flush();
            Runtime.getRuntime().halt(code); // JavaFX and Channel Access have threads that do not end
        }).start();
    }

    // --- one display ----------------------------------------------------------------------------------------------------

    private static void look(final String display) throws Exception
    {
        final String path = display.replaceAll("\\?.*", "");
        final Macros macros = new Macros();
        if (display.contains("?"))
            for (String pair : display.substring(path.length() + 1).split("&"))
                macros.add(pair.replaceAll("=.*", ""), URLDecoder.decode(pair.replaceAll("^[^=]*=", ""), "UTF-8"));
        final DisplayModel model = ModelLoader.loadModel(path);
        model.expandMacros(macros); // as DisplayRuntimeInstance.loadModel does
        final Shown shown = inFx(() -> represent(model));
        final String name = new File(path).getName().replace(".bob", "");
        System.out.println(name + ": " + examine(shown, name, macros.getValue("P")));
        drain(name);
        if (! Boolean.getBoolean("ebpfMon.onlyPictures"))
            press(shown, name, macros.getValue("P"));
        close(shown);
        await(() -> PVPool.getPVReferences().isEmpty(), 5); // those of trends go later, or with the next one
    }

    private static Shown represent(final DisplayModel model)
    {
        final Stage stage = new Stage();
        final Toolkit toolkit = new Toolkit(stage);
        RuntimeUtil.hookRepresentationListener(toolkit);
        try
        {
            toolkit.representModel(toolkit.configureStage(model, m -> {}), model);
        }
        catch (Exception ex)
        {
            throw new IllegalStateException(ex);
        }
        RuntimeUtil.getExecutor().execute(() -> RuntimeUtil.startRuntime(model));
        return new Shown(model, toolkit);
    }

    private static void close(final Shown shown) throws Exception
    {
        RuntimeUtil.stopRuntime(shown.model);
        inFx(() ->
        {
            shown.toolkit.disposeRepresentation(shown.model);
            shown.toolkit.stage.close();
            return null;
        });
    }

    /** Waits for the values, and writes the picture. Returns what there is to say in one line. */
    private static String examine(final Shown shown, final String name, final String prefix) throws Exception
    {
        shown.toolkit.awaitRepresentation(30, TimeUnit.SECONDS);
        await(() -> embedded(shown.model).stream().allMatch(e -> e.runtimePropEmbeddedModel().getValue() != null));
        await(() -> disconnected(shown.model).isEmpty());
        TimeUnit.MILLISECONDS.sleep((long) (seconds * 1000)); // for the trends
        await(() -> countBlank(shown) == 0); // on a busy machine Phoebus skips images (BufferUtil)
        if (countBlank(shown) > 0)
            problems.add(name + ": plots that were not drawn: " + countBlank(shown));
        for (String pv : disconnected(shown.model))
            problems.add(name + ": not connected: " + pv);
        final Set<String> pvs = new TreeSet<>();
        PVPool.getPVReferences().forEach(ref -> pvs.add(ref.getEntry().getName()));
        for (String pv : pvs)
            if (prefix != null && ! pv.startsWith("loc://") && ! pv.startsWith("=") &&
                ! pv.replaceFirst("^\\w+://", "").startsWith(prefix))
                problems.add(name + ": not of this prefix: " + pv);
        final List<Widget> widgets = all(shown.model);
        for (Widget widget : widgets)
            checkProperties(name, widget);
        final WritableImage image = inFx(() -> shown.toolkit.stage.getScene().getRoot().snapshot(null, null));
        ImageIO.write(SwingFXUtils.fromFXImage(image, null), "png", new File(folder, name + ".png"));
        final DisplayModel model = shown.model;
        if (! model.isClean())
            problems.add(name + ": Phoebus says that it is not clean");
        return widgets.size() + " widgets, " + pvs.size() + " PVs, " +
               model.propWidth().getValue() + " x " + model.propHeight().getValue();
    }

    /** Plots without an image. */
    private static long countBlank(final Shown shown)
    {
        try
        {
            return inFx(() -> shown.toolkit.stage.getScene().getRoot().lookupAll("*").stream().filter(
                node -> node instanceof ImageView view && view.getImage() == null &&
                        node.getClass().getName().startsWith("org.csstudio.javafx.rtplot")).count());
        }
        catch (Exception ex)
        {
            throw new IllegalStateException(ex);
        }
    }

    private static void drain(final String name)
    {
        for (String text; (text = logged.poll()) != null;)
            problems.add(name + ": " + text);
    }

    /** PVs of widgets that have no value, be it because the runtime has not come to them yet. */
    private static Set<String> disconnected(final DisplayModel model)
    {
        final Set<String> names = new TreeSet<>();
        for (Widget widget : all(model))
        {
            final String pv = widget.checkProperty("pv_name").map(p -> (String) p.getValue()).orElse("");
            if (pv.isEmpty() || widget.checkProperty("pv_value").isEmpty())
                continue;
            final Object value = widget.getProperty("pv_value").getValue();
            if (value == null || value instanceof VType v && PV.isDisconnected(v))
                names.add(pv);
        }
        return names;
    }

    // --- its widgets ----------------------------------------------------------------------------------------------------

    private static List<Widget> all(final DisplayModel model)
    {
        final List<Widget> found = new ArrayList<>();
        for (Widget widget : model.getChildren())
        {
            found.add(widget);
            if (widget instanceof EmbeddedDisplayWidget embedded && embedded.runtimePropEmbeddedModel().getValue() != null)
                found.addAll(all(embedded.runtimePropEmbeddedModel().getValue()));
        }
        return found;
    }

    private static List<EmbeddedDisplayWidget> embedded(final DisplayModel model)
    {
        return model.getChildren().stream().filter(w -> w instanceof EmbeddedDisplayWidget)
                    .map(w -> (EmbeddedDisplayWidget) w).toList();
    }

    /** Each element of the file is a property. Phoebus skips what it does not know (WidgetConfigurator). */
    private static void checkProperties(final String name, final Widget widget) throws Exception
    {
        final String file = widget.getDisplayModel().getUserData(DisplayModel.USER_DATA_INPUT_FILE);
        final Element display = javax.xml.parsers.DocumentBuilderFactory.newInstance().newDocumentBuilder()
                                     .parse(new File(file)).getDocumentElement();
        for (Element xml : children(display))
            if (xml.getTagName().equals("widget") && children(xml).stream().anyMatch(
                    e -> e.getTagName().equals("name") && e.getTextContent().equals(widget.propName().getValue())))
                for (Element e : children(xml))
                {
                    final var property = widget.checkProperty(e.getTagName());
                    if (property.isEmpty())
                        problems.add(name + ": " + widget.getType() + " has no property " + e.getTagName());
                    else
                        checkParts(name + ": " + widget.getType() + " " + e.getTagName(), property.get(), e);
                }
    }

    private static void checkParts(final String where, final WidgetProperty<?> property, final Element xml)
    {
        if (property instanceof StructuredWidgetProperty parts)
            for (Element e : children(xml))
            {
                final var part = parts.getValue().stream().filter(p -> p.getName().equals(e.getTagName())).findFirst();
                if (part.isEmpty())
                    problems.add(where + " has no " + e.getTagName());
                else
                    checkParts(where + " " + e.getTagName(), part.get(), e);
            }
        else if (property instanceof ArrayWidgetProperty<?> array)
        {
            final List<Element> elements = children(xml);
            if (elements.size() != array.size())
                problems.add(where + ": " + elements.size() + " elements in the file, " + array.size() + " read");
            for (int i = 0; i < Math.min(elements.size(), array.size()); i++)
                checkParts(where, array.getElement(i), elements.get(i));
        }
    }

    private static List<Element> children(final Element xml)
    {
        final List<Element> found = new ArrayList<>();
        for (var node = xml.getFirstChild(); node != null; node = node.getNextSibling())
            if (node instanceof Element e)
                found.add(e);
        return found;
    }

    // --- what opens -----------------------------------------------------------------------------------------------------

    /** Presses each button that opens a display, and selects the first row of each table. */
    private static void press(final Shown shown, final String name, final String prefix) throws Exception
    {
        final TreeMap<String, Runnable> ways = new TreeMap<>();
        final Set<String> buttons = new TreeSet<>();
        int number = 0;
        for (Widget widget : all(shown.model))
            if (widget instanceof ActionButtonWidget)
                for (ActionInfo action : ((ActionsWidgetProperty) widget.getProperty("actions")).getValue().getActions())
                {
                    // of several buttons to one display the first
                    if (action instanceof OpenDisplayAction open ? buttons.add(open.getFile()) :
                        action.getType().equals("execute") && isSeen(widget))
                        ways.put(String.format("%03d button %s", number++, widget.propName().getValue()),
                                 () -> ActionUtil.handleAction(widget, action));
                }
            else if (widget instanceof TableWidget table && hasRows(table))
                ways.put(String.format("%03d row of %s", number++, widget.propName().getValue()),
                         () -> table.runtimePropSelection().setValue(firstRow(table)));
        final Set<String> files = new TreeSet<>();
        for (var way : ways.entrySet())
        {
            way.getValue().run();
            await(() -> ! opened.isEmpty());
            final Shown next = opened.poll();
            if (next == null)
            {
                problems.add(name + ": opened nothing: " + way.getKey());
                continue;
            }
            final String given = next.model.getEffectiveMacros().getValue("P");
            if (! given.equals(prefix))
                problems.add(name + ": " + way.getKey() + " opened the prefix " + given);
            files.add(new File((String) next.model.getUserData(DisplayModel.USER_DATA_INPUT_FILE)).getName());
            await(() -> disconnected(next.model).isEmpty()); // a display that is still starting cannot be stopped
            close(next);
        }
        drain(name);
        System.out.println("  " + ways.size() + " buttons and rows open " + files);
    }

    private static boolean hasRows(final TableWidget table)
    {
        return ! table.propSelectionPV().getValue().isEmpty() && table.getProperty("pv_value").getValue() instanceof VTable rows &&
               rows.getRowCount() > 0;
    }

    /** As a click makes it (TableRepresentation): one row of texts. */
    private static VTable firstRow(final TableWidget table)
    {
        final VTable rows = (VTable) table.getProperty("pv_value").getValue();
        final List<Class<?>> types = new ArrayList<>();
        final List<String> names = new ArrayList<>();
        final List<Object> cells = new ArrayList<>();
        for (int i = 0; i < rows.getColumnCount(); i++)
        {
            final Object column = rows.getColumnData(i);
            types.add(String.class);
            names.add(rows.getColumnName(i));
            cells.add(List.of(column instanceof ListNumber numbers ? String.valueOf(numbers.getDouble(0)) :
                              (String) ((List<?>) column).get(0)));
        }
        return VTable.of(types, names, cells);
    }

    private static boolean isSeen(final Widget widget) throws Exception
    {
        final Widget holder = (Widget) widget.getDisplayModel().getUserData(DisplayModel.USER_DATA_EMBEDDING_WIDGET);
        return holder == null || (Boolean) holder.getProperty("visible").getValue();
    }

    // --- waiting --------------------------------------------------------------------------------------------------------

    private static <T> T inFx(final Callable<T> task) throws Exception
    {
        final var future = new java.util.concurrent.FutureTask<>(task);
        Platform.runLater(future);
        return future.get(60, TimeUnit.SECONDS);
    }

    private static void await(final BooleanSupplier condition) throws InterruptedException
    {
        await(condition, 60);
    }

    /** At most so many seconds: who called looks himself whether it is so. */
    private static void await(final BooleanSupplier condition, final int seconds) throws InterruptedException
    {
        for (int i = 0; i < 10 * seconds && ! condition.getAsBoolean(); i++)
            TimeUnit.MILLISECONDS.sleep(100);
    }
}
